import { createPublicKey, generateKeyPairSync, hash, type KeyObject, randomBytes, sign, webcrypto } from 'node:crypto';
import {
  BasicConstraintsExtension,
  cryptoProvider,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { expect } from 'chai';
import { NodeCertificates } from '../../../adapters/crypto/certificates.ts';
import { NodeSignatures } from '../../../adapters/crypto/signatures.ts';
import type { TrustAnchor } from '../../../application/ports/certificates.ts';
import { type ExpectedMdoc, verifyMdoc } from '../../../application/verification/verify-mdoc.ts';
import { decodeCbor } from '../../../domain/formats/cbor/decode.ts';
import { embed, encodeCbor } from '../../../domain/formats/cbor/encode.ts';
import { type Cbor, type CborMap, EncodedCbor, Tagged } from '../../../domain/formats/cbor/values.ts';
import { buildCoseSign1, parseCoseSign1, protectedHeaderOf, sigStructure } from '../../../domain/formats/cose/sign1.ts';
import { deviceAuthenticationBytes } from '../../../domain/formats/mdoc/device-auth.ts';
import { assertDocumentSigner, parseDocumentSigner } from '../../../domain/formats/mdoc/document-signer.ts';
import { type MdocContents, prepareMdoc, sealMdoc } from '../../../domain/formats/mdoc/issue.ts';
import { assertValidity, parseMso } from '../../../domain/formats/mdoc/mso.ts';
import { redirectTranscript } from '../../../domain/formats/mdoc/session-transcript.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { type PublicJwk, parsePublicJwk } from '../../../domain/shared/jwk.ts';
import { Refusal } from '../../../domain/shared/refusal.ts';

const NOW = new Date('2027-01-15T08:00:00Z');
const DOC_TYPE = 'org.example.badge';
const NAMESPACE = 'org.example.badge.1';
const USAGE = '1.0.18013.5.1.2';
const STATUS = { idx: 4711, uri: 'https://issuer.example/status/1' };
const CLAIMS: JsonObject = {
  family_name: 'Nygård',
  birth_date: '1984-01-26',
  portrait: '_9j_4A',
  height: 170,
  age_over_18: true,
  nationality: ['DE', 'FR'],
};

type Key = { readonly jwk: PublicJwk; readonly privateKey: KeyObject };

function makeKey(curve = 'P-256'): Key {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: curve });
  const jwk = parsePublicJwk(publicKey.export({ format: 'jwk' }));
  if (jwk === undefined) throw new Error('unreadable');
  return { jwk, privateKey };
}

function signBytes(data: Buffer, { privateKey }: Key): Buffer {
  return sign('sha256', data, { key: privateKey, dsaEncoding: 'ieee-p1363' });
}

const issuer = makeKey();
const holder = makeKey();
const ports = { signatures: new NodeSignatures(), certificates: new NodeCertificates() };
const transcript = redirectTranscript({
  clientId: 'x509_hash:abc',
  nonce: 'n-1',
  encryptionKey: undefined,
  responseUri: 'https://verifier.example/response',
});

/** Creates a signer and its CA, as DER in standard base64. */
async function makeCertificates(): Promise<{ readonly leaf: string; readonly root: string }> {
  cryptoProvider.set(webcrypto);
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
  const root = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const spki = createPublicKey(issuer.privateKey).export({ format: 'der', type: 'spki' });
  const publicKey = await webcrypto.subtle.importKey('spki', spki, algorithm, true, ['verify']);
  const common = {
    issuer: 'CN=IACA',
    notBefore: new Date('2026-01-01T00:00:00Z'),
    notAfter: new Date('2036-01-01T00:00:00Z'),
    signingKey: root.privateKey,
    signingAlgorithm: algorithm,
  };
  const usage = (flags: number) => new KeyUsagesExtension(flags, true);
  const ca = await X509CertificateGenerator.create({
    ...common,
    subject: 'CN=IACA',
    publicKey: root.publicKey,
    extensions: [new BasicConstraintsExtension(true, 0, true), usage(KeyUsageFlags.keyCertSign)],
  });
  const leaf = await X509CertificateGenerator.create({
    ...common,
    subject: 'CN=Signer',
    publicKey,
    extensions: [usage(KeyUsageFlags.digitalSignature), new ExtendedKeyUsageExtension([USAGE], true)],
  });
  return { leaf: Buffer.from(leaf.rawData).toString('base64'), root: Buffer.from(ca.rawData).toString('base64') };
}

let certificates: { readonly leaf: string; readonly root: string };
/** One array, so that the cache for parsed anchors is used. */
let anchors: readonly TrustAnchor[];

async function makeCertificatesOnce(): Promise<void> {
  certificates ??= await makeCertificates();
  anchors ??= [{ certificate: certificates.root }];
}

function contents(changes: Partial<MdocContents> = {}): MdocContents {
  return {
    docType: DOC_TYPE,
    claimsByNamespace: { [NAMESPACE]: CLAIMS },
    holderKey: holder.jwk,
    signer: { algorithm: 'ES256', chain: [certificates.leaf] },
    validity: {
      signed: new Date('2027-01-01T00:00:00.123Z'),
      validFrom: new Date('2027-01-01T00:00:00.123Z'),
      validUntil: new Date('2028-01-01T00:00:00.999Z'),
    },
    status: STATUS,
    random: randomBytes,
    ...changes,
  };
}

function issue(changes: Partial<MdocContents> = {}): CborMap {
  const prepared = prepareMdoc(contents(changes));
  const mdoc = sealMdoc(prepared, signBytes(prepared.toSign, issuer));
  return decodeCbor(Buffer.from(mdoc, 'base64url')) as CborMap;
}

type Device = { readonly nameSpaces?: Cbor; readonly payload?: Buffer; readonly auth?: Cbor; readonly key?: Key };

function signDevice({ nameSpaces = new Map(), payload, auth, key = holder }: Device = {}): Cbor {
  const encoded = embed(encodeCbor(nameSpaces));
  const protectedBytes = protectedHeaderOf('ES256');
  const bytes = deviceAuthenticationBytes(transcript, DOC_TYPE, encoded);
  const signature = signBytes(sigStructure(protectedBytes, bytes), key);
  const unprotectedHeader = new Map();
  const deviceSignature = buildCoseSign1({ protectedBytes, unprotectedHeader, signature, ...(payload && { payload }) });
  return { nameSpaces: encoded, deviceAuth: auth ?? { deviceSignature } };
}

function present(issuerSigned: Cbor, device: Device = {}, documentFields: Record<string, Cbor> = {}): string {
  const document = { docType: DOC_TYPE, issuerSigned, deviceSigned: signDevice(device) };
  return encodeCbor({ version: '1.0', documents: [document], status: 0, ...documentFields }).toString('base64url');
}

function verify(text: string, changes: Partial<ExpectedMdoc> = {}) {
  return verifyMdoc(ports, text, {
    now: NOW,
    transcripts: [transcript],
    docType: DOC_TYPE,
    anchors,
    holderBinding: true,
    issuerAlgorithms: ['ES256'],
    deviceAlgorithms: ['ES256'],
    ...changes,
  });
}

function outcomeOf(run: () => unknown): string {
  try {
    run();
    return 'accepted';
  } catch (error) {
    if (error instanceof Refusal) return error.reason;
    throw error;
  }
}

/** Signs a changed mobile security object over the same items. */
function resign(issuerSigned: CborMap, change: (mso: Map<string, Cbor>) => void): CborMap {
  const coseSign1 = parseCoseSign1(issuerSigned.get('issuerAuth'));
  const outer = decodeCbor(coseSign1.payload ?? Buffer.alloc(0));
  if (!(outer instanceof EncodedCbor)) throw new Error('no tag 24');
  const mso = new Map(decodeCbor(outer.content) as ReadonlyMap<string, Cbor>);
  change(mso);
  const payload = embed(encodeCbor(mso)).encoded;
  const signature = signBytes(sigStructure(coseSign1.protectedBytes, payload), issuer);
  return new Map([...issuerSigned, ['issuerAuth', buildCoseSign1({ ...coseSign1, payload, signature })]]);
}

function itemsOf(issuerSigned: CborMap): readonly EncodedCbor[] {
  return (issuerSigned.get('nameSpaces') as CborMap).get(NAMESPACE) as readonly EncodedCbor[];
}

function withItems(issuerSigned: CborMap, items: readonly Cbor[]): CborMap {
  return new Map([...issuerSigned, ['nameSpaces', { [NAMESPACE]: items }]]);
}

describe('mdoc', () => {
  before(makeCertificatesOnce);

  it('is issued, presented and accepted', () => {
    const result = verify(present(issue()));
    expect(result.namespaces).to.deep.equal({ [NAMESPACE]: CLAIMS });
    expect(result.docType).to.equal(DOC_TYPE);
    expect(result.issuer.subject).to.equal('CN=Signer');
    expect(result.statusReference).to.deep.equal(STATUS);
    expect(result.holderKey).to.deep.equal(holder.jwk);
    expect(result.validity.validUntil.toISOString()).to.equal('2028-01-01T00:00:00.000Z');
  });

  it('is accepted with some or no elements', () => {
    const issuerSigned = issue();
    const [first] = itemsOf(issuerSigned);
    const result = verify(present(withItems(issuerSigned, first === undefined ? [] : [first])));
    expect(Object.keys(result.namespaces[NAMESPACE] ?? {})).to.have.length(1);
    const { namespaces } = verify(present(new Map([['issuerAuth', issuerSigned.get('issuerAuth')]])));
    expect(namespaces).to.deep.equal({});
  });

  it('hashes the bytes that it sends, with shuffled digest ids', () => {
    const orders = new Set<string>();
    for (let round = 0; round < 20; round++) {
      const prepared = prepareMdoc(contents());
      const outer = decodeCbor(prepared.payload) as EncodedCbor;
      const mso = decodeCbor(outer.content) as CborMap;
      const digests = (mso.get('valueDigests') as CborMap).get(NAMESPACE) as CborMap;
      const ids = (prepared.nameSpaces.get(NAMESPACE) ?? []).map((item) => {
        const id = (decodeCbor(item.content) as CborMap).get('digestID') as number;
        expect((digests.get(id) as Buffer).equals(hash('sha256', item.encoded, 'buffer'))).to.equal(true);
        return id;
      });
      expect(ids.toSorted((a, b) => a - b)).to.deep.equal([0, 1, 2, 3, 4, 5]);
      orders.add(ids.join());
    }
    expect(orders.size).to.be.greaterThan(10);
  });

  it('generates 32 new random bytes for each element', () => {
    const random = [...itemsOf(issue()), ...itemsOf(issue())].map((item) => (decodeCbor(item.content) as CborMap).get('random') as Buffer);
    expect(random.every((bytes) => bytes.length === 32)).to.equal(true);
    expect(new Set(random.map((bytes) => bytes.toString('hex'))).size).to.equal(12);
  });

  it('has one encoding only', () => {
    const prepared = prepareMdoc(contents());
    const bytes = Buffer.from(sealMdoc(prepared, Buffer.alloc(64)), 'base64url');
    expect(encodeCbor(decodeCbor(bytes)).equals(bytes)).to.equal(true);
    const { content } = decodeCbor(prepared.payload) as EncodedCbor;
    expect(encodeCbor(decodeCbor(content)).equals(content)).to.equal(true);
  });

  it('is not issued with times out of order or an unsupported key', () => {
    const { validity } = contents();
    const lateExpiry = { ...validity, validUntil: new Date('2027-01-01T00:00:00.900Z') };
    const earlySignature = { ...validity, signed: new Date('2027-01-01T00:00:01Z') };
    const { y: _, ...half } = holder.jwk;
    for (const changes of [{ validity: lateExpiry }, { validity: earlySignature }, { holderKey: half }]) {
      expect(() => prepareMdoc(contents(changes)))
        .to.throw(Failure)
        .with.property('code', 'invalid_input');
    }
  });

  it('omits status and namespaces if they are empty', () => {
    const { status: _, ...without } = contents();
    const issuerSigned = (claimsByNamespace: MdocContents['claimsByNamespace']) => {
      const mdoc = sealMdoc(prepareMdoc({ ...without, claimsByNamespace }), Buffer.alloc(64));
      return decodeCbor(Buffer.from(mdoc, 'base64url')) as CborMap;
    };
    const read = (issuerSigned: CborMap) => parseMso(parseCoseSign1(issuerSigned.get('issuerAuth')).payload ?? Buffer.alloc(0));
    const disclosed = issuerSigned({ [NAMESPACE]: CLAIMS, 'org.example.empty': {} });
    expect([...(disclosed.get('nameSpaces') as CborMap).keys()]).to.deep.equal([NAMESPACE]);
    expect([...read(disclosed).valueDigests.keys()]).to.deep.equal([NAMESPACE]);
    expect(read(disclosed)).to.not.have.property('status');
    expect([...issuerSigned({}).keys()]).to.deep.equal(['issuerAuth']);
  });

  it('binds keys of other curves, too, and then requires their algorithm', () => {
    const key = makeKey('P-384');
    const issuerSigned = issue({ holderKey: key.jwk });
    expect(outcomeOf(() => verify(present(issuerSigned)))).to.equal('device_alg');
  });
});

describe('DeviceResponse', () => {
  before(makeCertificatesOnce);

  it('is rejected after the change of any byte', () => {
    const { family_name, age_over_18 } = CLAIMS;
    const claims = { family_name, age_over_18 } as JsonObject;
    const issuerSigned = issue({ claimsByNamespace: { [NAMESPACE]: claims } });
    const valid = Buffer.from(present(issuerSigned), 'base64url');
    const acceptedBytes = new Set<number>();
    for (let index = 0; index < valid.length; index++) {
      for (const change of index % 4 === 0 ? [0x01, 0x20, 0x80] : [0x01]) {
        const changed = Buffer.from(valid);
        changed[index] = (changed[index] ?? 0) ^ change;
        const text = changed.toString('base64url');
        if (outcomeOf(() => verify(text)) !== 'accepted') continue;
        acceptedBytes.add(index);
        const { namespaces } = verify(text);
        // A change may remove data, but never add or alter data.
        if (Object.keys(namespaces).length > 0) expect(namespaces).to.deep.equal({ [NAMESPACE]: claims });
      }
    }
    // The minor version of the response and the presence of namespaces are not signed.
    const version = valid.indexOf('1.0', 'latin1') + 2;
    const label = valid.indexOf(Buffer.concat([encodeCbor('nameSpaces'), Buffer.from([0xa1])])) + 1;
    const members = Array.from({ length: 'nameSpaces'.length }, (_, index) => label + index);
    expect([...acceptedBytes]).to.deep.equal([version, ...members]);
  });

  it('is rejected when it is truncated anywhere', () => {
    const valid = present(issue());
    for (let length = 0; length < valid.length; length += 7) {
      expect(outcomeOf(() => verify(valid.slice(0, length)))).to.equal('malformed');
    }
  });

  it('is decoded with indefinite lengths, too', () => {
    const text = present(issue());
    const bytes = Buffer.from(text, 'base64url');
    expect(bytes[0]).to.equal(0xa3);
    const indefiniteLength = Buffer.concat([Buffer.from([0xbf]), bytes.subarray(1), Buffer.from([0xff])]);
    expect(outcomeOf(() => verify(indefiniteLength.toString('base64url')))).to.equal('accepted');
  });

  it('may contain elements that the device was allowed to sign, separate from those of the issuer', () => {
    const deviceNameSpaces = { [NAMESPACE]: { family_name: 'Other' }, 'org.example.tx': { amount: 5 } };
    const allow = (keyAuthorizations: Cbor) =>
      resign(issue(), (mso) => {
        mso.set('deviceKeyInfo', new Map([...(mso.get('deviceKeyInfo') as CborMap), ['keyAuthorizations', keyAuthorizations]]));
      });
    const authorizations = { nameSpaces: [NAMESPACE], dataElements: { 'org.example.tx': ['amount'] } };
    const result = verify(present(allow(authorizations), { nameSpaces: deviceNameSpaces }));
    expect(result.deviceSigned).to.deep.equal(deviceNameSpaces);
    expect(result.namespaces[NAMESPACE]?.['family_name']).to.equal('Nygård');
    for (const insufficient of [{}, { nameSpaces: [NAMESPACE] }, { ...authorizations, dataElements: { 'org.example.tx': ['tax'] } }]) {
      expect(outcomeOf(() => verify(present(allow(insufficient), { nameSpaces: deviceNameSpaces })))).to.equal('key_authorization');
    }
    for (const malformed of [[], { nameSpaces: 'x' }, { dataElements: [] }]) {
      expect(outcomeOf(() => verify(present(allow(malformed))))).to.equal('malformed');
    }
  });

  it('is rejected for errors of its wallet', () => {
    const issuerSigned = issue();
    const mac = [Buffer.from('a10105', 'hex'), new Map(), null, Buffer.alloc(32)];
    // biome-ignore format: a table
    const cases: readonly (readonly [string, string])[] = [
      [present(issuerSigned, { key: makeKey() }), 'device_signature'],
      [present(issuerSigned, { payload: Buffer.from('p') }), 'malformed'],
      [present(issuerSigned, { auth: {} }), 'device_auth_missing'],
      [present(issuerSigned, { auth: { deviceMac: mac } }), 'device_alg'],
      [present(issuerSigned, {}, { version: '2.0' }), 'unsupported_version'],
      [present(issuerSigned, {}, { version: 1 }), 'malformed'],
      [present(issuerSigned, {}, { status: 11 }), 'response_status'],
      [present(issuerSigned, {}, { status: '0' }), 'response_status'],
      [present(issuerSigned, {}, { zkDocuments: [] }), 'malformed'],
      [present(issuerSigned, {}, { documents: 1 }), 'malformed'],
      [present(issuerSigned, {}, { documents: [1] }), 'malformed'],
      [present(withItems(issuerSigned, [])), 'malformed'],
      [present(withItems(issuerSigned, [1])), 'malformed'],
      [present(withItems(issuerSigned, [embed(encodeCbor(1))])), 'malformed'],
    ];
    for (const [text, reason] of cases) expect(outcomeOf(() => verify(text))).to.equal(reason);
    expect(outcomeOf(() => verify(present(issuerSigned), { transcripts: [encodeCbor([null, null, null])] }))).to.equal('device_signature');
  });

  it('tolerates document errors that the wallet reports', () => {
    const text = present(issue(), {}, { documentErrors: [{ 'org.example.other': 0 }] });
    expect(outcomeOf(() => verify(text))).to.equal('accepted');
  });
});

describe('security object of an mdoc', () => {
  before(makeCertificatesOnce);

  const time = (text: string) => new Tagged(0, text);
  const validity = (changes: Record<string, Cbor>) => (mso: Map<string, Cbor>) =>
    mso.set('validityInfo', new Map([...(mso.get('validityInfo') as CborMap), ...Object.entries(changes)]));
  const replace = (name: string, value: Cbor) => (mso: Map<string, Cbor>) => mso.set(name, value);
  // biome-ignore format: a table
  const CASES: readonly (readonly [string, (mso: Map<string, Cbor>) => unknown, string])[] = [
    ['a later minor version', replace('version', '1.1'), 'accepted'],
    ['another version', replace('version', '2.0'), 'unsupported_version'],
    ['no version', (mso) => mso.delete('version'), 'malformed'],
    ['an old hash', replace('digestAlgorithm', 'SHA-1'), 'unsupported_hash'],
    ['another hash than was used', replace('digestAlgorithm', 'SHA-384'), 'digest_mismatch'],
    ['another type', replace('docType', 'org.example.other'), 'doctype_mismatch'],
    ['a type that is not a string', replace('docType', 1), 'malformed'],
    ['no digests', replace('valueDigests', {}), 'digest_mismatch'],
    ['digests of another form', replace('valueDigests', []), 'malformed'],
    ['no key', replace('deviceKeyInfo', {}), 'holder_key_missing'],
    ['an expiry within the clock skew', validity({ validUntil: time('2027-01-15T07:59:01Z') }), 'accepted'],
    ['an expiry beyond the clock skew', validity({ validUntil: time('2027-01-15T07:59:00Z') }), 'credential_expired'],
    ['a beginning within the skew', validity({ validFrom: time('2027-01-15T08:01:00Z') }), 'accepted'],
    ['a beginning beyond the skew', validity({ validFrom: time('2027-01-15T08:01:01Z') }), 'credential_not_yet_valid'],
    ['a signature of the future', validity({ signed: time('2027-01-15T08:01:01Z') }), 'credential_not_yet_valid'],
    ['a signature before the certificate is valid', validity({ signed: time('2025-12-31T23:59:59Z') }), 'signed_outside_certificate'],
    ['an expected update', validity({ expectedUpdate: time('2027-06-01T00:00:00Z') }), 'accepted'],
    ['a time without tag', validity({ signed: '2027-01-01T00:00:00Z' }), 'malformed'],
    ['a time of another tag', validity({ signed: new Tagged(1004, '2027-01-01T00:00:00Z') }), 'malformed'],
    ['a time in a list', validity({ signed: new Tagged(0, ['2027-01-01T00:00:00Z']) }), 'malformed'],
    ['no time at all', validity({ signed: undefined }), 'malformed'],
    ['a time with fractions', validity({ signed: time('2027-01-01T00:00:00.000Z') }), 'malformed'],
    ['a time with an offset', validity({ signed: time('2027-01-01T00:00:00+00:00') }), 'malformed'],
    ['an impossible time', validity({ signed: time('2027-01-01T25:00:00Z') }), 'malformed'],
    ['no status', (mso) => mso.delete('status'), 'accepted'],
    ['a status of another kind', replace('status', { identifier_list: { id: Buffer.from('1'), uri: 'u' } }), 'status_invalid'],
    ['a status with a negative index', replace('status', { status_list: { idx: -1, uri: 'https://a' } }), 'status_invalid'],
  ];
  for (const [description, change, expected] of CASES) {
    it(`${expected === 'accepted' ? 'may have' : 'is rejected for'} ${description}`, () => {
      expect(outcomeOf(() => verify(present(resign(issue(), change))))).to.equal(expected);
    });
  }

  it('converts elements only when they are read', () => {
    const item = (digestID: number, elementIdentifier: string, elementValue: Cbor) =>
      embed(encodeCbor({ digestID, random: Buffer.alloc(16), elementIdentifier, elementValue }));
    const items = [item(0, 'odd', 'a\0b'), item(1, 'even', Number.NaN)];
    const digests = { [NAMESPACE]: new Map(items.map(({ encoded }, id) => [id, hash('sha256', encoded, 'buffer')])) };
    const issuerSigned = resign(withItems(issue(), items), replace('valueDigests', digests));
    const { namespaces } = verify(present(issuerSigned));
    expect(namespaces[NAMESPACE]?.['even']).to.equal(null);
    expect(outcomeOf(() => namespaces[NAMESPACE]?.['odd'])).to.equal('malformed');
  });

  it('must be signed while its signer was valid', () => {
    const [notBefore, notAfter] = [new Date('2026-01-01'), new Date('2026-12-31')];
    const [validFrom, validUntil] = [new Date('2027-01-01'), new Date('2028-01-01')];
    const signedAt = (signed: string) =>
      outcomeOf(() => assertValidity({ signed: new Date(signed), validFrom, validUntil }, { notBefore, notAfter }, NOW));
    expect(signedAt('2026-12-31')).to.equal('accepted');
    expect(signedAt('2026-12-31T00:00:01Z')).to.equal('signed_outside_certificate');
    expect(signedAt('2025-12-31')).to.equal('signed_outside_certificate');
  });

  it('rejects the whole response if the device signed for another request, whatever else is invalid', () => {
    const otherTranscript = redirectTranscript({
      clientId: 'x509_hash:abc',
      nonce: 'n-2',
      encryptionKey: undefined,
      responseUri: 'https://verifier.example/response',
    });
    const transcripts = { transcripts: [otherTranscript] };
    const refusalOf = (text: string, changes: Partial<ExpectedMdoc>) => {
      try {
        verify(text, changes);
        return 'accepted';
      } catch (error) {
        return error instanceof Refusal ? `${error.name} ${error.reason}` : String(error);
      }
    };
    const valid = present(issue());
    expect(refusalOf(valid, transcripts)).to.equal('NonceRefusal device_signature');
    expect(refusalOf(valid, { ...transcripts, anchors: [] })).to.equal('NonceRefusal untrusted_chain');
    expect(refusalOf(valid, { ...transcripts, docType: 'x' })).to.equal('NonceRefusal doctype_mismatch');
    expect(refusalOf(valid, { anchors: [] }), 'for this request').to.equal('Refusal untrusted_chain');
    const prepared = prepareMdoc(contents());
    const mdoc = sealMdoc(prepared, signBytes(prepared.toSign, makeKey()));
    const forged = present(decodeCbor(Buffer.from(mdoc, 'base64url')));
    expect(refusalOf(forged, transcripts), 'signed by another key').to.equal('Refusal issuer_signature');
  });

  it('requires device binding under HAIP, regardless of the query', () => {
    const issuerSigned = issue();
    const text = encodeCbor({ version: '1.0', documents: [{ docType: DOC_TYPE, issuerSigned: issuerSigned }], status: 0 }).toString(
      'base64url',
    );
    const outcome = (haip: boolean) => outcomeOf(() => verify(text, { holderBinding: false, haip }));
    expect([outcome(false), outcome(true)]).to.deep.equal(['accepted', 'device_auth_missing']);
  });

  it('is rejected for malformed items, even if they are signed', () => {
    const valid = { digestID: 0, random: Buffer.alloc(16), elementIdentifier: 'a', elementValue: 1 };
    const { elementValue: _, ...without } = valid;
    const cases: readonly (readonly [Cbor, string])[] = [
      [valid, 'accepted'],
      [{ ...valid, random: Buffer.alloc(15) }, 'malformed'],
      [{ ...valid, digestID: -1 }, 'malformed'],
      [{ ...valid, digestID: 2 ** 31 }, 'malformed'],
      [{ ...valid, elementIdentifier: '__proto__' }, 'malformed'],
      [{ ...valid, elementValue: 'a\0b' }, 'accepted'],
      [without, 'malformed'],
    ];
    for (const [content, expected] of cases) {
      const item = embed(encodeCbor(content));
      const digests = { [NAMESPACE]: new Map([[0, hash('sha256', item.encoded, 'buffer')]]) };
      const issuerSigned = resign(withItems(issue(), [item]), replace('valueDigests', digests));
      expect(outcomeOf(() => verify(present(issuerSigned)))).to.equal(expected);
    }
  });
});

describe('document signer', () => {
  before(makeCertificatesOnce);

  it('is validated by validity and usage', () => {
    const signer = parseDocumentSigner(certificates.leaf);
    expect(signer).to.deep.equal({
      notBefore: new Date('2026-01-01T00:00:00Z'),
      notAfter: new Date('2036-01-01T00:00:00Z'),
      usages: { critical: true, oids: [USAGE] },
    });
    expect(() => assertDocumentSigner(signer, USAGE)).to.not.throw();
    expect(outcomeOf(() => assertDocumentSigner(signer, '1.2.3'))).to.equal('certificate_profile');
    expect(outcomeOf(() => assertDocumentSigner(parseDocumentSigner(certificates.root), USAGE))).to.equal('certificate_profile');
    for (const invalid of ['AAAA', 'MAA=']) {
      expect(outcomeOf(() => parseDocumentSigner(invalid))).to.equal('issuer_key_unresolved');
    }
  });
});
