import { generateKeyPairSync } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import { NodeSignatures } from '../../../adapters/crypto/signatures.ts';
import { parseProofs } from '../../../domain/issuance/credential-request.ts';
import { attestedKey, KeyAttestationCache, parseKeyAttestation } from '../../../domain/issuance/key-attestation.ts';
import { assertJwtProofClaims, parseJwtProof } from '../../../domain/issuance/proof.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { isOnCurve, type PublicJwk, parsePublicJwk, thumbprint } from '../../../domain/shared/jwk.ts';
import { failureCode as outcome } from '../../support/failures.ts';
import { processorTime } from '../../support/measurements.ts';
import { keyProof, makeJwt, newKey } from '../../support/raw-wallet.ts';
import { WalletProvider } from '../../support/wallet-provider.ts';

const ISSUER = 'https://issuer.example/acme';

function keysOfEveryCurve(): PublicJwk[] {
  const curves = ['P-256', 'P-384', 'P-521'].map((namedCurve) =>
    generateKeyPairSync('ec', { namedCurve }).publicKey.export({ format: 'jwk' }),
  );
  const edwards = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });
  return [...curves, edwards] as unknown as PublicJwk[];
}

describe('key for a credential', () => {
  it('may be on any supported curve', () => {
    for (let round = 0; round < 20; round++) {
      for (const key of keysOfEveryCurve()) {
        expect(parsePublicJwk(key)).to.deep.equal(key);
        expect(isOnCurve(key)).to.equal(true);
      }
    }
  });

  it('has one encoding, so that one key cannot be used as two', () => {
    const { jwk } = newKey();
    const longer = Buffer.concat([Buffer.of(0), Buffer.from(jwk.x, 'base64url')]).toString('base64url');
    const shorter = Buffer.from(jwk.x, 'base64url').subarray(1).toString('base64url');
    for (const x of [longer, shorter, `${jwk.x}A`, '', 'A']) {
      expect(parsePublicJwk({ ...jwk, x })).to.equal(undefined);
      expect(parsePublicJwk({ ...jwk, y: x })).to.equal(undefined);
    }
  });

  it('is a point of its curve', () => {
    for (const key of keysOfEveryCurve().filter(({ kty }) => kty === 'EC')) {
      const y = key.y ?? '';
      expect(isOnCurve({ ...key, y: key.x })).to.equal(false);
      const zero = Buffer.alloc(Buffer.from(y, 'base64url').length);
      const [zeros, ones] = [zero.toString('base64url'), Buffer.from(zero).fill(255).toString('base64url')];
      expect(isOnCurve({ ...key, x: zeros, y: zeros })).to.equal(false);
      expect(isOnCurve({ ...key, x: ones })).to.equal(false);
      expect(isOnCurve({ ...key, crv: 'secp256k1' })).to.equal(false);
    }
  });
});

describe('client in a proof', () => {
  const issuerResult = (iss: string | undefined) =>
    outcome(() =>
      assertJwtProofClaims(parseJwtProof(keyProof(newKey(), ISSUER, 'nonce', { payload: { iss } })), {
        ...{ audience: ISSUER, clientId: 'wallet', now: new Date() },
      }),
    );

  it('is the client of the token, or absent', () => {
    expect([issuerResult('wallet'), issuerResult(undefined), issuerResult('else')]).to.deep.equal([
      'accepted',
      'accepted',
      'invalid_proof',
    ]);
  });

  it('may be any iss if the token has no client', () => {
    const anonymousResult = (iss: unknown) =>
      outcome(() =>
        assertJwtProofClaims(parseJwtProof(keyProof(newKey(), ISSUER, 'nonce', { payload: { iss } })), {
          ...{ audience: ISSUER, clientId: undefined, now: new Date() },
        }),
      );
    expect([anonymousResult('Yours'), anonymousResult(undefined)]).to.deep.equal(['accepted', 'accepted']);
    for (const iss of [7, null, ['wallet'], {}]) expect(anonymousResult(iss)).to.equal('invalid_proof');
  });
});

describe('proofs of a request', () => {
  const parse = (proofs: unknown, options: object = {}, batchSize = 3) =>
    parseProofs({ proofs } as JsonObject, { keyBinding: true, ...options }, batchSize);
  const both = { proofTypes: ['jwt', 'attestation'] as const };
  const attested = { keyAttestationsRequired: {} };

  it('have a type that the configuration accepts', () => {
    expect(parse({ jwt: ['a', 'b'] })).to.deep.equal({ type: 'jwt', texts: ['a', 'b'] });
    const attestation = { type: 'attestation', texts: ['a'] };
    expect(parse({ attestation: ['a'] }, both)).to.deep.equal(attestation);
    expect(parse({ attestation: ['a'] }, attested), 'both when attestations are required').to.deep.equal(attestation);
    expect(parse({ jwt: ['a'] }, attested)).to.deep.equal({ type: 'jwt', texts: ['a'] });
    expect(outcome(() => parse({ attestation: ['a'] }))).to.equal('invalid_proof');
    expect(outcome(() => parse({ jwt: ['a'] }, { proofTypes: ['attestation'] }))).to.equal('invalid_proof');
  });

  it('are limited to the batch size, and to one attestation', () => {
    expect(outcome(() => parse({ jwt: ['a', 'b', 'c'] }))).to.equal('accepted');
    expect(outcome(() => parse({ jwt: ['a', 'b', 'c', 'd'] }))).to.equal('invalid_credential_request');
    for (const size of [0, 1]) {
      expect(outcome(() => parse({ jwt: ['a'] }, {}, size))).to.equal('accepted');
      expect(outcome(() => parse({ jwt: ['a', 'b'] }, {}, size))).to.equal('invalid_credential_request');
    }
    expect(outcome(() => parse({ attestation: ['a', 'b'] }, both))).to.equal('invalid_proof');
  });

  it('are ignored without key binding', () => {
    for (const proofs of [undefined, { jwt: 5 }, { smoke: [] }]) {
      expect(parse(proofs, { keyBinding: false })).to.equal(undefined);
    }
  });

  it('fail with two errors only, for any input', () => {
    const arbitraryProofs = fc.record({ jwt: fc.jsonValue(), attestation: fc.jsonValue() }, { requiredKeys: [] });
    fc.assert(
      fc.property(fc.oneof(arbitraryProofs, fc.jsonValue()), (proofs) => {
        const codes = ['accepted', 'invalid_proof', 'invalid_credential_request'];
        expect(outcome(() => parse(proofs, both))).to.be.oneOf(codes);
      }),
      { numRuns: 250 },
    );
  });
});

describe('key of a jwt proof', () => {
  let provider: WalletProvider;
  const keys = [newKey(), newKey(), newKey()] as const;
  const [key] = keys;
  before(async () => {
    provider = await WalletProvider.make();
  });

  const keyOf = (header: Record<string, unknown>) => parseJwtProof(keyProof(key, ISSUER, 'nonce', { header })).key;
  const withKid = (kid: unknown, attestation = provider.keyAttestation(keys)) =>
    keyOf({ jwk: undefined, kid, key_attestation: attestation });

  it('is in jwk', () => {
    expect(keyOf({})).to.deep.equal(key.jwk);
    expect(keyOf({ key_attestation: provider.keyAttestation(keys) })).to.deep.equal(key.jwk);
  });

  it('is any jwk in attested_keys', () => {
    for (const attested of [
      [key, keys[1]],
      [keys[1], key],
      [keys[1], keys[2], key],
    ])
      expect(keyOf({ key_attestation: provider.keyAttestation(attested) })).to.deep.equal(key.jwk);
  });

  it('is not a jwk outside attested_keys', () => {
    const attestation = provider.keyAttestation([keys[1], keys[2]]);
    expect(outcome(() => keyOf({ key_attestation: attestation }))).to.equal('invalid_proof');
    expect(outcome(() => keyOf({ key_attestation: 'a.b.c' }))).to.equal('invalid_proof');
  });

  it('is the key at index 0 of attested_keys without jwk and kid (TS3 section 2.2.2.2)', () => {
    const attestation = provider.keyAttestation(keys);
    expect(keyOf({ jwk: undefined, key_attestation: attestation })).to.deep.equal(key.jwk);
    const reversed = provider.keyAttestation([keys[1], key]);
    expect(keyOf({ jwk: undefined, key_attestation: reversed })).to.deep.equal(keys[1].jwk);
  });

  it('is one of key_attestation by index, thumbprint or its own kid', () => {
    expect(withKid('0')).to.deep.equal(key.jwk);
    expect(withKid('2')).to.deep.equal(keys[2].jwk);
    expect(withKid(thumbprint(keys[1].jwk as PublicJwk))).to.deep.equal(keys[1].jwk);
    const withKids = keys.map(({ jwk }, index) => ({ ...jwk, kid: `key-${index}` }));
    const attestation = provider.keyAttestation(keys, { payload: { attested_keys: withKids } });
    expect(withKid('key-1', attestation)).to.deep.equal(keys[1].jwk);
  });

  it('is found by its kid first, and by its index second', () => {
    const withKids = keys.map(({ jwk }, index) => ({ ...jwk, kid: String(2 - index) }));
    const attestation = provider.keyAttestation(keys, { payload: { attested_keys: withKids } });
    expect(withKid('0', attestation)).to.deep.equal(keys[2].jwk);
    const duplicate = keys.map(({ jwk }) => ({ ...jwk, kid: '0' }));
    const ambiguous = provider.keyAttestation(keys, { payload: { attested_keys: duplicate } });
    expect(outcome(() => withKid('0', ambiguous))).to.equal('invalid_proof');
  });

  it('is rejected with any other name', () => {
    for (const kid of ['3', '-1', '00', '1.0', '1e0', '', 'key-0', 'did:jwk:abc#0', 0, null, ['0']]) {
      expect(outcome(() => withKid(kid))).to.equal('invalid_proof');
    }
    const mutations: Record<string, unknown>[] = [
      { jwk: undefined },
      { jwk: undefined, kid: '0' },
      { jwk: undefined, kid: 'did:example:1#0' },
      { kid: '0' },
      { kid: '0', key_attestation: provider.keyAttestation(keys) },
      { x5c: [provider.signer.certificate] },
      { jwk: undefined, x5c: [provider.signer.certificate] },
      { trust_chain: ['x'] },
      { jwk: undefined, kid: '0', trust_chain: ['x'], key_attestation: provider.keyAttestation(keys) },
      { key_attestation: 5 },
      { key_attestation: null },
      { key_attestation: [provider.keyAttestation(keys)] },
      { jwk: undefined, kid: '0', key_attestation: 'a.b.c' },
      { jwk: { ...key.jwk, d: 'x' } },
      { jwk: { kty: 'RSA', n: 'x', e: 'AQAB' } },
      { jwk: { kty: 'oct', k: 'x' } },
      { jwk: newKey('P-384').jwk },
      { crit: ['exp'], exp: 1 },
      { b64: false },
    ];
    for (const header of mutations) {
      expect(
        outcome(() => keyOf(header)),
        JSON.stringify(header),
      ).to.equal('invalid_proof');
    }
  });

  it('is rejected in a proof that exceeds the size limit, which is larger with an attestation', () => {
    const padding = 'x'.repeat(20_000);
    const proof = (header: object) => makeJwt(key, { typ: 'openid4vci-proof+jwt', alg: 'ES256', ...header }, {});
    expect(outcome(() => parseJwtProof(proof({ jwk: key.jwk, padding })))).to.equal('invalid_proof');
    const hundred = Array.from({ length: 100 }, () => newKey());
    const attestation = provider.keyAttestation([key, ...hundred.slice(1)]);
    expect(outcome(() => parseJwtProof(proof({ kid: '0', key_attestation: attestation })))).to.equal('accepted');
    const tooLarge = proof({ jwk: key.jwk, key_attestation: 'x'.repeat(100_000) });
    expect(outcome(() => parseJwtProof(tooLarge))).to.equal('invalid_proof');
  });

  it('fails with one error only, for any input', () => {
    const member = fc.oneof(fc.jsonValue(), fc.constant(key.jwk), fc.constant(provider.keyAttestation(keys)));
    const names = ['typ', 'alg', 'jwk', 'kid', 'key_attestation', 'x5c', 'crit', 'b64'];
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...names), member, { maxKeys: 3 }), (header) => {
        expect(outcome(() => keyOf(header))).to.be.oneOf(['accepted', 'invalid_proof']);
      }),
      { numRuns: 150 },
    );
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[A-Za-z0-9_-]{0,40}(\.[A-Za-z0-9_-]{0,40}){2}$/)), (text) => {
        expect(outcome(() => parseJwtProof(text))).to.equal('invalid_proof');
        expect(outcome(() => parseKeyAttestation(text))).to.equal('invalid_proof');
      }),
      { numRuns: 250 },
    );
  });

  it('is found among any attested keys in bounded time', () => {
    const entry = fc.oneof(
      fc.jsonValue(),
      fc.record({ kid: fc.jsonValue() }).map((options) => ({ ...key.jwk, ...options })),
    );
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 5 }), fc.string(), (attestedKeys, kid) => {
        const text = provider.keyAttestation(keys, { payload: { attested_keys: attestedKeys } });
        expect(outcome(() => attestedKey(parseKeyAttestation(text), kid))).to.be.oneOf(['accepted', 'invalid_proof']);
      }),
      { numRuns: 100 },
    );
    const hundred = Array.from({ length: 101 }, () => newKey());
    expect(outcome(() => parseKeyAttestation(provider.keyAttestation(hundred)))).to.equal('invalid_proof');
    const cpuMs = processorTime(() => {
      for (let round = 0; round < 10; round++) parseKeyAttestation(provider.keyAttestation(hundred.slice(1)));
    });
    expect(cpuMs).to.be.lessThan(1000);
  });

  it('of a request has at most a hundred keys in its attestations, each verified once', () => {
    const attestationOf = (count: number) => provider.keyAttestation(Array.from({ length: count }, () => newKey()));
    const [first, second] = [attestationOf(60), attestationOf(41)];
    const keyOf = new KeyAttestationCache();
    for (let proofs = 0; proofs < 45; proofs++) expect(keyOf.parse(first).keys.size).to.equal(60);
    expect(outcome(() => keyOf.parse(second))).to.equal('invalid_proof');
    expect(keyOf.parse(attestationOf(40)).keys.size).to.equal(40);
    expect(outcome(() => keyOf.parse(attestationOf(1)))).to.equal('invalid_proof');
    expect(new KeyAttestationCache().parse(second).keys.size, 'another request').to.equal(41);
  });

  it('verifies its proof if it has a supported curve', () => {
    const proof = parseJwtProof(keyProof(key, ISSUER, 'nonce'));
    const signatures = new NodeSignatures();
    expect(signatures.verify(proof.key, proof.signingInput, proof.signature)).to.equal(true);
  });
});

describe('times of a proof', () => {
  const now = new Date();
  const seconds = Math.floor(now.getTime() / 1000);
  const times = (payload: Record<string, unknown>) => {
    const key = newKey();
    const proof = parseJwtProof(keyProof(key, ISSUER, 'nonce', { payload: { iat: seconds, ...payload } }));
    return outcome(() => assertJwtProofClaims(proof, { audience: ISSUER, clientId: undefined, now }));
  };

  for (const payload of [{}, { exp: seconds + 60 }, { nbf: seconds - 60 }, { nbf: seconds + 30 }, { exp: seconds - 59 }]) {
    it(`are accepted: ${JSON.stringify(Object.keys(payload))}`, () => expect(times(payload)).to.equal('accepted'));
  }
  for (const payload of [
    { exp: seconds - 61 },
    { exp: seconds - 60 },
    { exp: 'soon' },
    { exp: null },
    { nbf: seconds + 300 },
    { nbf: '0' },
  ]) {
    it(`are rejected: ${JSON.stringify(payload)}`, () => expect(times(payload)).to.equal('invalid_proof'));
  }
});
