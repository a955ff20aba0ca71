import { NodeSignatures } from '../../../adapters/crypto/signatures.ts';
import { covers } from '../../../domain/registrar/coverage.ts';
import {
  IssuedAccessCertificate,
  IssuedRegistrationCertificate,
  RelyingParties,
} from '../../../domain/registrar/registrar-api.ts';
import {
  openRegistrationCertificate,
  RegistrationCertificateRefusal,
  readRegistrationCertificate,
  timeFault,
} from '../../../domain/registrar/registration-certificate.ts';
import { parseJson } from '../../../domain/shared/json.ts';
import { readTrustList } from '../../../domain/trust-lists/lote.ts';
import { credentialIssuers, selectCertificates } from '../../../domain/trust-lists/select-certificates.ts';
import { checkSigningTime, openSignedList } from '../../../domain/trust-lists/signed-list.ts';
import { TrustListRefusal } from '../../../domain/trust-lists/trust-list-refusal.ts';
import { DcqlQuery } from '../../../domain/verification/dcql/query.ts';
import { NOW } from '../constants.ts';
import { nothing, oneOf, promise, type Target } from '../engine/target.ts';
import { JOSE_WORDS, JSON_WORDS, KEYS, seed, text } from './seeds.ts';

const signatures = new NodeSignatures();
const good = ['trust-list', 'registration-certificate'].map((name) => text(seed(name)));

function trustList(input: Buffer): void {
  const list = openSignedList(text(input));
  const isSigned = signatures.verify(KEYS.issuer, list.jws.signingInput, list.jws.signature);
  promise(!isSigned || good.includes(text(input)), 'nothing verifies that nobody signed');
  checkSigningTime(list, NOW);
  const read = readTrustList(list.jws.payload, NOW);
  promise(read.nextUpdate === null || read.nextUpdate > NOW, 'a list that has ended vouches for nobody');
  selectCertificates(read, credentialIssuers());
}

const query = DcqlQuery.parse({
  credentials: [
    {
      id: 'pid',
      format: 'dc+sd-jwt',
      meta: { vct_values: ['urn:example:pid'] },
      claims: [{ path: ['age'] }],
    },
  ],
});

function registrationCertificate(input: Buffer): void {
  const opened = openRegistrationCertificate(text(input));
  const { signingInput, signature } = opened.jws;
  const isSigned = signatures.verify(KEYS.issuer, signingInput, signature);
  promise(!isSigned || good.includes(text(input)), 'nothing verifies that nobody signed');
  const certificate = readRegistrationCertificate(opened);
  timeFault(certificate, NOW);
  covers(certificate, query);
}

export const TRUST: readonly Target[] = [
  {
    name: 'trust-list',
    expected: oneOf(TrustListRefusal),
    seeds: good.slice(0, 1),
    dictionary: [
      ...JOSE_WORDS,
      'LoTE',
      'NextUpdate',
      'critical',
      'SchemeExtensions',
      'ServiceStatus',
      'TEAddress',
      'lote+jwt',
      '.5Z',
    ],
    decode: trustList,
  },
  {
    name: 'registration-certificate',
    expected: oneOf(RegistrationCertificateRefusal),
    seeds: good.slice(1),
    dictionary: [
      ...JOSE_WORDS,
      'credentials',
      'claim',
      'claims',
      'intended_uses',
      'act',
      'meta',
      'vct_values',
      'path',
      'values',
    ],
    decode: registrationCertificate,
  },
  {
    name: 'registrar-answers',
    expected: nothing,
    seeds: [
      '[{"id":"rp"}]',
      '{"id":"c","crt":"PEM"}',
      '{"id":"c","jwt":"a.b.c","relyingPartyId":null,"revoked":"2020"}',
    ],
    dictionary: JSON_WORDS,
    decode: (input) => {
      const answer = parseJson(text(input));
      for (const shape of [RelyingParties, IssuedAccessCertificate, IssuedRegistrationCertificate])
        shape.safeParse(answer);
    },
  },
];
