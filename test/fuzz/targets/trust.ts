import { NodeSignatures } from '../../../adapters/crypto/signatures.ts';
import { DcqlQuery } from '../../../domain/dcql/query.ts';
import { findQueryCoverage } from '../../../domain/registrar/coverage.ts';
import { IssuedAccessCertificate, IssuedRegistrationCertificate, RelyingParties } from '../../../domain/registrar/registrar-api.ts';
import {
  findTimeProblem,
  parseRegistration,
  parseRegistrationCertificate,
  RegistrationCertificateRefusal,
} from '../../../domain/registrar/registration-certificate.ts';
import { isJsonObject, type Json, parseJson } from '../../../domain/shared/json.ts';
import { parsePointers } from '../../../domain/trust-lists/list-pointer.ts';
import { parseTrustList } from '../../../domain/trust-lists/lote.ts';
import { credentialIssuers, selectCertificates } from '../../../domain/trust-lists/select-certificates.ts';
import { assertSigningTime, parseSignedList } from '../../../domain/trust-lists/signed-list.ts';
import { TrustListRefusal } from '../../../domain/trust-lists/trust-list-refusal.ts';
import { isProvider, type ListElement, TRUSTED_LIST_ROOT, TrustedListReader } from '../../../domain/trust-lists/trusted-list.ts';
import { NOW } from '../constants.ts';
import { ensure, isInstanceOfAny, neverExpected, type Target } from '../engine/target.ts';
import { JOSE_WORDS, JSON_WORDS, KEYS, seed, text } from './seeds.ts';

const signatures = new NodeSignatures();
const validTexts = ['trust-list', 'registration-certificate'].map((name) => text(seed(name)));

function trustList(input: Buffer): void {
  const list = parseSignedList(text(input));
  const isSigned = signatures.verify(KEYS.issuer, list.jws.signingInput, list.jws.signature);
  ensure(!isSigned || validTexts.includes(text(input)), 'nothing verifies that nobody signed');
  assertSigningTime(list, NOW);
  const parsedList = parseTrustList(list.jws.payload, NOW);
  ensure(parsedList.nextUpdate === null || parsedList.nextUpdate > NOW, 'a list that has ended vouches for nobody');
  selectCertificates(parsedList, credentialIssuers());
}

const POINTERS = [
  {
    LoTELocation: 'https://lists.example/de',
    ServiceDigitalIdentities: [{ X509Certificates: [{ val: 'AAAA' }, { val: 'BB BB' }] }],
    LoTEQualifiers: [{ LoTEType: 'x/LoTEType/PIDListOfLists', SchemeTerritory: 'DE', MimeType: 'application/jwt' }],
  },
];

/** Parts of a signed list. */
function pointers(input: Buffer): void {
  const value = parseJson(text(input));
  for (const { uri, signers, territory } of parsePointers(value)) {
    ensure(URL.canParse(uri) && uri.length <= 2_000, 'a pointer has an address');
    ensure(signers.length > 0 && signers.length <= 20, 'somebody signs, and not everybody');
    ensure(
      signers.every((pemText) => !/\s/.test(pemText)),
      'certificates have no white space',
    );
    ensure(territory === undefined || typeof territory === 'string', 'a territory is a text');
  }
}

const { namespace } = TRUSTED_LIST_ROOT;

/** Pieces as they are read of signed XML, here written as JSON: an object with what is inside, or a text. */
function element(name: string, value: Json): ListElement {
  const entries = isJsonObject(value) ? Object.entries(value) : [];
  const children = entries.flatMap(([child, content]) =>
    (Array.isArray(content) ? content : [content]).map((one: Json) => element(child, one)),
  );
  const attributes = new Map(entries.flatMap(([key, pemText]) => (typeof pemText === 'string' ? [[key, pemText]] : [])));
  return { namespace, name, attributes, children, text: typeof value === 'string' ? value : '' };
}

const TRUSTED_LIST = {
  SchemeInformation: {
    TSLVersionIdentifier: '6',
    TSLSequenceNumber: '7',
    TSLType: 'http://uri.etsi.org/TrstSvc/TrustedList/TSLType/EUgeneric',
    ListIssueDateTime: new Date(NOW.getTime() - 60_000).toISOString(),
    NextUpdate: { dateTime: new Date(NOW.getTime() + 60_000).toISOString() },
  },
  TrustServiceProviderList: {
    TrustServiceProvider: {
      TSPInformation: { TSPName: { Name: 'Acme' } },
      TSPServices: {
        TSPService: {
          ServiceInformation: {
            ServiceTypeIdentifier: 'http://uri.etsi.org/TrstSvc/Svctype/CA/QC',
            ServiceStatus: 'http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus/granted',
            StatusStartingTime: '2020-01-01T00:00:00Z',
            ServiceDigitalIdentity: { DigitalId: { X509Certificate: 'AAAA' } },
          },
        },
      },
    },
  },
};

/** Passes the parts on as the parser of documents does. */
function takeParts(reader: TrustedListReader, { children }: ListElement, path: readonly string[] = []): void {
  for (const child of children) {
    const below = [...path, child.name];
    if (isProvider(below)) reader.beginProvider();
    if (TrustedListReader.isPart(below)) reader.addPart(child);
    else takeParts(reader, child, below);
  }
}

function trustedList(input: Buffer): void {
  const value = parseJson(text(input));
  if (value === undefined) return;
  const reader = new TrustedListReader(NOW);
  takeParts(reader, element(TRUSTED_LIST_ROOT.name, value));
  const xmlResult = reader.finish();
  ensure(xmlResult.nextUpdate === null || xmlResult.nextUpdate > NOW, 'a list that has ended vouches for nobody');
  selectCertificates(xmlResult, credentialIssuers());
}

const query = DcqlQuery.parse({
  credentials: [{ id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: ['urn:example:pid'] }, claims: [{ path: ['age'] }] }],
});

function registrationCertificate(input: Buffer): void {
  const parsedCertificate = parseRegistrationCertificate(text(input));
  const { signingInput, signature } = parsedCertificate.jws;
  const isSigned = signatures.verify(KEYS.issuer, signingInput, signature);
  ensure(!isSigned || validTexts.includes(text(input)), 'nothing verifies that nobody signed');
  const certificate = parseRegistration(parsedCertificate);
  findTimeProblem(certificate, NOW);
  findQueryCoverage(certificate, query);
}

export const TRUST: readonly Target[] = [
  {
    name: 'trust-list',
    expected: isInstanceOfAny(TrustListRefusal),
    seeds: validTexts.slice(0, 1),
    dictionary: [...JOSE_WORDS, 'LoTE', 'NextUpdate', 'critical', 'SchemeExtensions', 'ServiceStatus', 'TEAddress', 'lote+jwt', '.5Z'],
    decode: trustList,
  },
  {
    name: 'list-pointers',
    expected: neverExpected,
    seeds: [JSON.stringify(POINTERS), JSON.stringify([...POINTERS, ...POINTERS])],
    dictionary: [...JSON_WORDS, ...Object.keys(POINTERS[0] ?? {}), 'LoTEType', 'MimeType', 'val', 'ListOfTrustedLists'],
    decode: pointers,
  },
  {
    name: 'trusted-list',
    expected: isInstanceOfAny(TrustListRefusal),
    seeds: [JSON.stringify(TRUSTED_LIST)],
    dictionary: ['TSLType', 'Critical', 'ServiceInformationExtensions', 'Extension', 'Listofthelists', 'dateTime', '.5Z'],
    decode: trustedList,
  },
  {
    name: 'registration-certificate',
    expected: isInstanceOfAny(RegistrationCertificateRefusal),
    seeds: validTexts.slice(1),
    dictionary: [...JOSE_WORDS, 'credentials', 'claim', 'claims', 'intended_uses', 'act', 'meta', 'vct_values', 'path', 'values'],
    decode: registrationCertificate,
  },
  {
    name: 'registrar-answers',
    expected: neverExpected,
    seeds: ['[{"id":"rp"}]', '{"id":"c","crt":"PEM"}', '{"id":"c","jwt":"a.b.c","relyingPartyId":null,"revoked":"2020"}'],
    dictionary: JSON_WORDS,
    decode: (input) => {
      const answer = parseJson(text(input));
      for (const shape of [RelyingParties, IssuedAccessCertificate, IssuedRegistrationCertificate]) shape.safeParse(answer);
    },
  },
];
