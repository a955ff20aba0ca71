import { generateKeyPairSync, hash, type KeyObject, randomBytes, sign } from 'node:crypto';
import { expect } from 'chai';
import { NodeSignatures } from '../../../adapters/crypto/signatures.ts';
import { Certificates, type ChainVerdict } from '../../../application/ports/certificates.ts';
import { type ExpectedSdJwtVc, verifySdJwtVc } from '../../../application/verification/verify-sd-jwt-vc.ts';
import { buildSigningInput, joinCompact, parseCompactJws } from '../../../domain/formats/jose/compact.ts';
import { parseDisclosureFrame } from '../../../domain/formats/sd-jwt/disclosure-frame.ts';
import { prepareSdJwt, sealSdJwt } from '../../../domain/formats/sd-jwt/issue.ts';
import type { Json, JsonObject } from '../../../domain/shared/json.ts';
import { type PublicJwk, parsePublicJwk } from '../../../domain/shared/jwk.ts';
import { NonceRefusal, Refusal } from '../../../domain/shared/refusal.ts';

const NOW = 1_800_000_000;
const issuer = makeKey();
const holder = makeKey();

function makeKey(): { readonly jwk: PublicJwk; readonly privateKey: KeyObject } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const jwk = parsePublicJwk(publicKey.export({ format: 'jwk' }));
  if (jwk === undefined) throw new Error('unreadable');
  return { jwk, privateKey };
}

function signText(text: string, { privateKey }: { readonly privateKey: KeyObject }): Buffer {
  return sign('sha256', Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' });
}

/** Trusts every chain. */
class TrustingCertificates extends Certificates {
  override isResponder(): boolean {
    return false;
  }

  override verifyChain(): ChainVerdict {
    return {
      trusted: true,
      key: issuer.jwk,
      anchor: 'a',
      subject: 'CN=Issuer',
      fingerprint: 'f',
      names: [],
      anchorCertificate: '',
      below: 0,
    };
  }
  override hasSigned(): boolean {
    return false;
  }
}

const ports = { signatures: new NodeSignatures(), certificates: new TrustingCertificates() };

const EXPECTED: ExpectedSdJwtVc = {
  now: new Date(NOW * 1000),
  requestedAt: new Date((NOW - 200) * 1000),
  nonce: 'n-1',
  audience: 'x509_hash:abc',
  recipients: ['x509_hash:abc', 'https://verifier.example'],
  anchors: [],
  holderBinding: true,
  sdJwtAlgorithms: ['ES256'],
  kbAlgorithms: ['ES256'],
};

type Changes = {
  readonly header?: JsonObject;
  readonly visible?: JsonObject;
  readonly claims?: JsonObject;
  /** Disclosures that this service would not create. */
  readonly disclosed?: JsonObject;
  readonly kbHeader?: JsonObject;
  readonly kb?: Readonly<Record<string, Json | undefined>>;
  readonly kbKey?: { readonly privateKey: KeyObject };
  /** Changes the raw signature of the key binding JWT. */
  readonly kbSignature?: (signature: Buffer) => Buffer;
  readonly withoutBinding?: boolean;
};

/** Removes properties that are null. */
function withoutNull(properties: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(properties).filter(([, value]) => value !== null));
}

/** Signs the prepared SD-JWT with additional disclosures. */
function sealWith(prepared: ReturnType<typeof prepareSdJwt>, disclosed: JsonObject): string {
  const texts = Object.entries(disclosed).map((claim) =>
    Buffer.from(JSON.stringify(['a salt for the tests', ...claim])).toString('base64url'),
  );
  const { header = {}, payload = {} } = parseCompactJws(`${prepared.signingInput}.`) ?? {};
  const digests = [...(payload['_sd'] as string[]), ...texts.map((text) => hash('sha256', text, 'base64url'))];
  const signingInput = buildSigningInput(header, { ...payload, _sd: digests });
  const sdJwt = sealSdJwt({ ...prepared, signingInput }, signText(signingInput, issuer));
  return sdJwt + texts.map((text) => `${text}~`).join('');
}

/** Creates a presentation that is valid except for `changes`. */
function present(changes: Changes = {}): string {
  const prepared = prepareSdJwt({
    header: { alg: 'ES256', typ: 'dc+sd-jwt', x5c: ['AAAA'], ...changes.header },
    alwaysVisible: withoutNull({ vct: 'urn:card', iat: NOW - 10, cnf: { jwk: holder.jwk }, ...changes.visible }),
    claims: changes.claims ?? { name: 'Erika' },
    frame: parseDisclosureFrame({ _sd: ['name'] }),
    random: randomBytes,
  });
  const credential = sealWith(prepared, changes.disclosed ?? {});
  if (changes.withoutBinding) return credential;
  const kb = { nonce: 'n-1', aud: 'x509_hash:abc', iat: NOW, ...changes.kb };
  const payload = JSON.parse(JSON.stringify({ sd_hash: hash('sha256', credential, 'base64url'), ...kb }));
  const input = buildSigningInput({ alg: 'ES256', typ: 'kb+jwt', ...changes.kbHeader }, payload);
  const signature = signText(input, changes.kbKey ?? holder);
  return credential + joinCompact(input, changes.kbSignature?.(signature) ?? signature);
}

function outcomeOf(changes: Changes, expected: Partial<ExpectedSdJwtVc> = {}): string {
  try {
    verifySdJwtVc(ports, present(changes), { ...EXPECTED, ...expected });
    return 'accepted';
  } catch (error) {
    if (error instanceof Refusal) return error.reason;
    throw error;
  }
}

const otherKey = makeKey();

describe('verification of an SD-JWT VC', () => {
  it('returns the verified content', () => {
    const status = { status_list: { idx: 7, uri: 'https://issuer.example/1' } };
    const result = verifySdJwtVc(ports, present({ visible: { status, iss: 'https://issuer.example' } }), EXPECTED);
    expect({ ...result.claims }).to.include({ name: 'Erika', vct: 'urn:card' });
    expect(result).to.deep.include({
      vct: 'urn:card',
      iss: 'https://issuer.example',
      statusReference: status.status_list,
      holderKey: holder.jwk,
      confirmedTransactionData: [],
    });
    expect(result.alwaysVisible).to.not.have.property('name');
  });

  const acceptedCases: Readonly<Record<string, Changes>> = {
    'the whole media type as typ': { header: { typ: 'application/DC+SD-JWT' } },
    'an exp within the skew': { visible: { exp: NOW - 59 } },
    'an nbf within the skew': { visible: { nbf: NOW + 60 } },
    'a fractional exp': { visible: { exp: NOW + 0.5 } },
    'a fractional iat of the key binding': { kb: { iat: NOW + 0.5 } },
    'a key binding with valid times': { kb: { exp: NOW + 60, nbf: NOW - 10 } },
    'this verifier as the audience': { visible: { aud: ['x', 'https://verifier.example'] } },

    'transaction data hashes that were not requested': { kb: { transaction_data_hashes: ['x'] } },
    'a key binding from just before the request, by a slow clock': { kb: { iat: NOW - 260 } },
    'another jwk in the key binding header': { kbHeader: { jwk: { ...otherKey.jwk } } },
    'unknown confirmation properties beside the holder key': { visible: { cnf: { jwk: holder.jwk, 'kc-jkt-type': 'DPoP', kid: 'key-1' } } },
    'a holder key that names its algorithm': { visible: { cnf: { jwk: { ...holder.jwk, alg: 'ES256' } } } },
  };
  for (const [description, changes] of Object.entries(acceptedCases)) {
    it(`accepts ${description}`, () => expect(outcomeOf(changes)).to.equal('accepted'));
  }

  const rejectedCases: readonly (readonly [string, string, Changes])[] = [
    ['issuer_alg', 'alg none of the issuer', { header: { alg: 'none' } }],
    ['issuer_alg', 'an algorithm the key does not have', { header: { alg: 'ES384' } }],
    ['unsupported_crit', 'an unencoded payload', { header: { b64: false } }],
    ['issuer_key_unresolved', 'an empty x5c', { header: { x5c: [] } }],
    ['malformed', 'an empty vct', { visible: { vct: '' } }],
    ['malformed', 'a vct that is not a string', { visible: { vct: 5 } }],
    ['malformed', 'an issuer that is not a string', { visible: { iss: 1 } }],
    ['malformed', 'a recipient that is not a string', { visible: { aud: 1 } }],
    ['credential_audience', 'another recipient', { visible: { aud: 'https://other.example' } }],
    ['credential_not_yet_valid', 'a disclosed iat of tomorrow', { visible: { iat: null }, disclosed: { iat: NOW + 86_400 } }],
    ['malformed', 'a time that is text', { visible: { nbf: '1' } }],
    ['credential_expired', 'an exp before the skew', { visible: { exp: NOW - 60 } }],
    ['credential_not_yet_valid', 'an nbf after the skew', { visible: { nbf: NOW + 61 } }],
    ['credential_not_yet_valid', 'an iat after the skew', { visible: { iat: NOW + 61 } }],
    ['forbidden_disclosure', 'a decoy inside cnf', { visible: { cnf: { jwk: holder.jwk, _sd: ['x'] } } }],
    ['forbidden_disclosure', 'a digest two levels down in cnf', { visible: { cnf: { jwk: { ...holder.jwk, _sd: ['x'] } } } }],
    [
      'forbidden_disclosure',
      'a digest two levels down in status',
      { visible: { status: { status_list: { idx: 1, uri: 'https://a', _sd: ['x'] } } } },
    ],
    ['holder_key_missing', 'a symmetric holder key', { visible: { cnf: { jwk: { kty: 'oct', k: 'AA' } } } }],
    ['holder_key_missing', 'a holder key with a contradicting algorithm', { visible: { cnf: { jwk: { ...holder.jwk, alg: 'ES384' } } } }],
    ['status_invalid', 'an unknown status mechanism', { visible: { status: { identifier_list: {} } } }],
    ['status_invalid', 'a negative index', { visible: { status: { status_list: { idx: -1, uri: 'x' } } } }],
    ['kb_typ', 'a key binding typ in capitals', { kbHeader: { typ: 'KB+JWT' } }],
    ['kb_alg', 'a key binding algorithm that does not fit', { kbHeader: { alg: 'HS256' } }],
    ['unsupported_crit', 'crit in the key binding header', { kbHeader: { crit: ['x'] } }],
    ['kb_signature', 'a key of the header instead of cnf', { kbKey: otherKey, kbHeader: { jwk: { ...otherKey.jwk } } }],
    ['kb_signature', 'a signature of the wrong length', { kbSignature: (raw) => Buffer.concat([raw, raw]) }],
    ['kb_signature', 'no signature', { kbSignature: () => Buffer.alloc(0) }],
    ['aud_mismatch', 'another audience', { kb: { aud: 'abc' } }],
    ['kb_iat_window', 'a key binding older than the request', { kb: { iat: NOW - 261 } }],
    ['kb_iat_window', 'a key binding with a time in the future', { kb: { iat: NOW + 61 } }],
    ['kb_iat_window', 'an expired key binding', { kb: { exp: NOW - 60 } }],
    ['kb_iat_window', 'a key binding that is not valid yet', { kb: { nbf: NOW + 61 } }],
    ['kb_claim_type', 'an exp of the key binding that is text', { kb: { exp: '1' } }],
    ['kb_claim_type', 'an nbf of the key binding that is text', { kb: { nbf: '1' } }],
    ['kb_claim_type', 'an iat of the key binding that is text', { kb: { iat: '1' } }],
    ['kb_claim_type', 'an sd_hash that is not a string', { kb: { sd_hash: 1 } }],
    ['holder_binding_missing', 'no key binding', { withoutBinding: true }],
  ];
  it('rejects the whole response for a wrong nonce, whatever else is invalid', () => {
    const nonce = 'n-2';
    for (const [changes, name] of [
      [{ kb: { nonce } }, 'NonceRefusal nonce_mismatch'],
      [{ kb: { nonce }, visible: { exp: NOW - 100 } }, 'NonceRefusal credential_expired'],
      [{ kb: { nonce }, header: { alg: 'ES384' } }, 'NonceRefusal issuer_alg'],
      [{ kb: { nonce }, kbKey: otherKey }, 'NonceRefusal kb_signature'],
      [{ visible: { exp: NOW - 100 } }, 'Refusal credential_expired'],
    ] as const) {
      try {
        verifySdJwtVc(ports, present(changes), EXPECTED);
        expect.fail('accepted');
      } catch (error) {
        expect(error instanceof Refusal && `${error.name} ${error.reason}`).to.equal(name);
      }
    }
  });

  it('requires key binding under HAIP, regardless of the query', () => {
    const waived = (changes: Changes, haip: boolean) => outcomeOf({ ...changes, withoutBinding: true }, { holderBinding: false, haip });
    expect(waived({}, false)).to.equal('accepted');
    expect(waived({}, true)).to.equal('holder_binding_missing');
    expect(waived({ visible: { cnf: null } }, true)).to.equal('accepted');
  });

  for (const [reason, description, changes] of rejectedCases) {
    it(`rejects ${description} as ${reason}`, () => expect(outcomeOf(changes)).to.equal(reason));
  }

  it('accepts any of several audiences', () => {
    expect(outcomeOf({}, { audience: ['x', 'x509_hash:abc'] })).to.equal('accepted');
    expect(outcomeOf({}, { audience: ['x', 'x509_hash:abcd'] })).to.equal('aud_mismatch');
    expect(outcomeOf({ kb: { aud: ['x509_hash:abc'] } })).to.equal('aud_not_string');
  });

  it('rejects an algorithm that the request did not offer', () => {
    expect(outcomeOf({}, { kbAlgorithms: ['ES384'] })).to.equal('kb_alg');
    expect(outcomeOf({}, { sdJwtAlgorithms: ['ES384'] })).to.equal('issuer_alg');
  });

  it('limits the age of a key binding when the request has no time', () => {
    const { requestedAt: _, ...timeless } = EXPECTED;
    const verifyAt = (iat: number) => () => verifySdJwtVc(ports, present({ kb: { iat } }), timeless);
    expect(verifyAt(NOW - 300)).not.to.throw();
    expect(verifyAt(NOW - 301)).to.throw(Refusal, 'kb_iat_window');
  });

  it('accepts a missing optional key binding, but checks a present one', () => {
    const free = { holderBinding: false };
    expect(outcomeOf({ withoutBinding: true }, free)).to.equal('accepted');
    expect(outcomeOf({ withoutBinding: true, visible: { cnf: {} } }, free)).to.equal('accepted');
    expect(outcomeOf({ kbKey: otherKey }, free)).to.equal('kb_signature');
  });

  it('distinguishes a wrong, missing or mistyped nonce from all other rejections', () => {
    for (const nonce of ['n-2', undefined, 5]) {
      expect(() => verifySdJwtVc(ports, present({ kb: { nonce } }), EXPECTED)).to.throw(NonceRefusal);
    }
    expect(outcomeOf({ kb: { nonce: 'n-2', aud: 'x' } })).to.equal('nonce_mismatch');
    expect(() => verifySdJwtVc(ports, present({ kb: { aud: 'x' } }), EXPECTED)).to.not.throw(NonceRefusal);
  });

  it('accepts any order of transaction data hashes, but each must belong to an entry', () => {
    const transactionData = ['e30', 'eyJhIjoxfQ'];
    const hashes = transactionData.map((text) => hash('sha256', text, 'base64url'));
    const withHashes = (values: Json) => outcomeOf({ kb: { transaction_data_hashes: values } }, { transactionData });
    expect(withHashes([...hashes].reverse())).to.equal('accepted');
    expect(withHashes(hashes.slice(1))).to.equal('transaction_data_mismatch');
    expect(withHashes([...hashes, 'x'])).to.equal('transaction_data_mismatch');
    expect(withHashes('x')).to.equal('transaction_data_mismatch');
    expect(outcomeOf({}, { transactionData })).to.equal('transaction_data_missing');
  });

  it('accepts only requested algorithms of transaction data hashes', () => {
    const text = Buffer.from('{"transaction_data_hashes_alg":["sha-384"]}').toString('base64url');
    const expected = { transactionData: [text] };
    const hashes = [hash('sha384', text, 'base64url')];
    const withAlgorithm = { transaction_data_hashes: hashes, transaction_data_hashes_alg: 'sha-384' };
    expect(outcomeOf({ kb: withAlgorithm }, expected)).to.equal('accepted');
    expect(outcomeOf({ kb: { transaction_data_hashes: hashes } }, expected)).to.equal('transaction_data_alg');
    const withOtherAlgorithm = { ...withAlgorithm, transaction_data_hashes_alg: 'sha-256' };
    expect(outcomeOf({ kb: withOtherAlgorithm }, expected)).to.equal('transaction_data_alg');
  });
});
