import { expect } from 'chai';
import { HolderKeys } from '../../../application/issuance/holder-keys.ts';
import { KeyAttestations } from '../../../application/issuance/key-attestations.ts';
import { createChallenge } from '../../../domain/oauth/challenge.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { type HolderKey, keyProof, newKey } from '../../support/raw-wallet.ts';
import { certify, WEB_SERVER } from '../../support/test-certificates.ts';
import { ClientWorld, SERVER } from '../oauth/kit.ts';
import { ACME } from '../verification/kit.ts';
import { aConfiguration } from './kit.ts';

const REQUIRED = { keyAttestationsRequired: {} };
const keys = [newKey(), newKey(), newKey()] as const;
const [first, second, third] = keys;

describe('key attestations', () => {
  let client: ClientWorld;
  let holderKeys: HolderKeys;

  beforeEach(async () => {
    client = await ClientWorld.make();
    const { world, settings, walletProviderTrust } = client;
    const keyAttestations = new KeyAttestations({ ...world, walletProviderTrust });
    holderKeys = new HolderKeys({ ...world, settings, keyAttestations });
    client.configure({ batchSize: 5 });
  });

  let drawn = 0;
  const nonce = (purpose = 'c_nonce', tenant: string = ACME) => {
    const [key] = client.settings.nonceKeys;
    if (key === undefined) throw new Error('no key');
    const random = Buffer.alloc(10);
    random.writeUInt32BE(drawn++);
    return createChallenge(key, tenant, purpose, client.now, random);
  };
  type Options = NonNullable<Parameters<ClientWorld['provider']['keyAttestation']>[1]>;
  const attest = (options: Options = {}, of: readonly HolderKey[] = keys) =>
    client.provider.keyAttestation(of, { nonce: nonce(), ...options });
  const proof = (header: Record<string, unknown>, payload: Record<string, unknown> = {}, key = first) =>
    keyProof(key, SERVER, nonce(), { header, payload: { iat: client.world.seconds, ...payload } });

  const prove = (proofs: JsonObject, configuration: object = REQUIRED) =>
    holderKeys.verifyProofs(client.configured, aConfiguration({ ...configuration }), { proofs }, undefined, client.now);
  const proven = async (proofs: JsonObject, configuration?: object) => (await prove(proofs, configuration)).holderKeys;
  const refusal = async (proofs: JsonObject, configuration?: object): Promise<Failure> => {
    try {
      await prove(proofs, configuration);
    } catch (error) {
      if (error instanceof Failure) return error;
      throw error;
    }
    throw new Error('nothing failed');
  };
  const expectRefusal = async (proofs: JsonObject, code = 'invalid_proof', configuration?: object) =>
    expect((await refusal(proofs, configuration)).code).to.equal(code);
  const jwks = (...some: readonly HolderKey[]) => some.map(({ jwk }) => jwk);
  const inBothTypes = (text: string): JsonObject[] => [{ attestation: [text] }, { jwt: [proof({ key_attestation: text })] }];

  it('yield a key for each credential, the proven ones first', async () => {
    expect(await proven({ attestation: [attest()] })).to.deep.equal(jwks(...keys));
    expect(await proven({ jwt: [proof({ jwk: third.jwk, key_attestation: attest() }, {}, third)] })).to.deep.equal(
      jwks(third, first, second),
    );
    const unnamed = proof({ jwk: undefined, key_attestation: attest() });
    expect(await proven({ jwt: [unnamed] })).to.deep.equal(jwks(...keys));
    const byName = proof({ jwk: undefined, kid: '1', key_attestation: attest() }, {}, second);
    expect(await proven({ jwt: [byName] })).to.deep.equal(jwks(second, first, third));
  });

  it('yield no more keys than a batch', async () => {
    client.configure({ batchSize: 2 });
    expect(await proven({ attestation: [attest()] })).to.deep.equal(jwks(first, second));
    const third_ = proof({ jwk: third.jwk, key_attestation: attest() }, {}, third);
    expect(await proven({ jwt: [third_] })).to.deep.equal(jwks(third, first));
    for (const batchSize of [0, 1]) {
      client.configure({ batchSize });
      expect(await proven({ attestation: [attest()] })).to.deep.equal(jwks(first));
      expect(await proven({ jwt: [proof({ key_attestation: attest() })] })).to.deep.equal(jwks(first));
    }
  });

  it('may be one for several proofs, or one for each', async () => {
    const text = attest();
    const proofs = [first, second].map((key) => proof({ jwk: key.jwk, key_attestation: text }, {}, key));
    expect(await proven({ jwt: proofs })).to.deep.equal(jwks(first, second, third));
    const own = [first, second].map((key) => proof({ jwk: key.jwk, key_attestation: attest({}, [key]) }, {}, key));
    expect(await proven({ jwt: own })).to.deep.equal(jwks(first, second));
  });

  it('have all their nonces consumed together with those of the proofs', async () => {
    const [one, other] = [nonce(), nonce()];
    const header = { key_attestation: attest({ nonce: one }) };
    expect((await prove({ jwt: [proof(header, { nonce: one })] })).used).to.have.length(1);
    const { used } = await prove({ jwt: [proof(header, { nonce: other })] });
    expect(used.map(({ kind }) => kind)).to.deep.equal(['c_nonce', 'c_nonce']);
    expect(new Set(used.map(({ hash }) => hash)).size).to.equal(2);
    expect((await prove({ attestation: [attest({ nonce: one })] })).used).to.have.length(1);
  });

  it('are required in each proof if the configuration requires them', async () => {
    await expectRefusal({ jwt: [proof({})] });
    const good = proof({ key_attestation: attest() });
    await expectRefusal({ jwt: [good, proof({ jwk: second.jwk }, {}, second)] });
    expect(await proven({ jwt: [proof({})] }, {})).to.deep.equal(jwks(first));
  });

  const bends: [string, () => Options | Promise<Options>][] = [
    ['of the draft typ', () => ({ header: { typ: 'keyattestation+jwt' } })],
    ['of an alg that is not allowed for signatures', () => ({ header: { alg: 'none' } })],
    ['of an nbf that is not a number', () => ({ payload: { nbf: 'soon' } })],
    ['of no typ', () => ({ header: { typ: undefined } })],
    ['of alg none', () => ({ header: { alg: 'none' } })],
    ['of alg HS256', () => ({ header: { alg: 'HS256' } })],
    ['of an alg that does not fit its key', () => ({ header: { alg: 'ES384' } })],
    ['with a critical extension', () => ({ header: { crit: ['x'], x: 1 } })],
    ['without x5c', () => ({ header: { x5c: undefined } })],
    ['with kid instead of x5c', () => ({ header: { x5c: undefined, kid: 'provider' } })],
    ['with trust_chain instead of x5c', () => ({ header: { x5c: undefined, trust_chain: ['x'] } })],
    ['with an empty x5c', () => ({ header: { x5c: [] } })],
    ['with x5c of nonsense', () => ({ header: { x5c: ['AAAA'] } })],
    ['with the anchor in x5c', () => ({ header: { x5c: x5c('signer', 'root') } })],
    ['by a self-signed leaf', async () => ({ signer: await certify({ name: 'Nobody' }) })],
    [
      'by a web server of the provider',
      async () => ({ signer: await certify({ name: 'Web', by: client.provider.root, purposes: [WEB_SERVER] }) }),
    ],
    ['by the anchor itself', () => ({ signer: client.provider.root })],
    ['by a stranger', async () => ({ signer: await stranger() })],
    ['by another key than that of x5c', () => ({ header: { x5c: x5c('revocationSigner') } })],
    ['signed wrong', async () => ({ signer: { ...client.provider.signer, ...newKey() } })],
    ['without iat', () => ({ payload: { iat: undefined } })],
    ['with iat as text', () => ({ payload: { iat: 'now' } })],
    ['with a time in the future', () => ({ payload: { iat: client.world.seconds + 61 } })],
    ['that is not valid yet', () => ({ payload: { nbf: client.world.seconds + 61 } })],
    ['that expired 60 seconds ago', () => ({ payload: { exp: client.world.seconds - 60 } })],
    ['with exp as text', () => ({ payload: { exp: 'never' } })],
    ['without keys', () => ({ payload: { attested_keys: undefined } })],
    ['with an empty list of keys', () => ({ payload: { attested_keys: [] } })],
    ['with a key outside a list', () => ({ payload: { attested_keys: first.jwk } })],
    ['with a private key', () => ({ payload: { attested_keys: [{ ...first.jwk, d: 'x' }] } })],
    ['with a key twice', () => ({ payload: { attested_keys: jwks(first, first) } })],
    ['with a key off its curve', () => ({ payload: { attested_keys: [first.jwk, { ...second.jwk, y: first.jwk.y }] } })],
    ['with a key that we cannot verify with', () => ({ payload: { attested_keys: [first.jwk, { kty: 'RSA', n: 'x', e: 'AQAB' }] } })],
    ['with key_storage as text', () => ({ payload: { key_storage: 'iso_18045_high' } })],
    ['with an empty key_storage', () => ({ payload: { key_storage: [] } })],
    ['with user_authentication of numbers', () => ({ payload: { user_authentication: [1] } })],
    ['with a nonce that is not a string', () => ({ payload: { nonce: 5 } })],
    ['with a nonce that is null', () => ({ payload: { nonce: null } })],
    ['with an empty nonce', () => ({ payload: { nonce: '' } })],
    ['with a broken status', () => ({ payload: { status: { status_list: { idx: -1 } } } })],
    ['with a status that we do not know', () => ({ payload: { status: { other: 1 } } })],
  ];
  const x5c = (...names: ('signer' | 'root' | 'revocationSigner')[]) => names.map((name) => client.provider[name].certificate);
  const stranger = async () => certify({ name: 'Wallet Provider', by: await certify({ name: 'Wallet CA', ca: true }) });
  for (const [what, bend] of bends) {
    it(`are rejected: ${what}`, async () => {
      const text = attest(await bend());
      for (const proofs of inBothTypes(text)) await expectRefusal(proofs);
    });
  }

  it('that do not expire are accepted alone, but not with a proof', async () => {
    const text = attest({ payload: { exp: undefined } });
    expect(await proven({ attestation: [text] })).to.deep.equal(jwks(...keys));
    await expectRefusal({ jwt: [proof({ key_attestation: text })] });
  });

  it('need a nonce as a separate proof, but not in a proof of type jwt', async () => {
    const text = attest({ payload: { nonce: undefined } });
    await expectRefusal({ attestation: [text] });
    const { holderKeys: proven_, used } = await prove({ jwt: [proof({ key_attestation: text })] });
    expect(proven_).to.deep.equal(jwks(...keys));
    expect(used).to.have.length(1);
    // Such an attestation can be used again, with a proof that has a nonce of its own.
    expect(await proven({ jwt: [proof({ key_attestation: text })] })).to.have.length(3);
    await expectRefusal({ jwt: [proof({ key_attestation: text }, { nonce: undefined })] });
    await expectRefusal({ jwt: [proof({ key_attestation: text }, { nonce: 'invented' })] }, 'invalid_nonce');
  });

  it('are accepted with a clock that is a little ahead or behind', async () => {
    const { seconds } = client.world;
    const payload = { iat: seconds + 8, nbf: seconds + 8, exp: seconds - 59 };
    for (const proofs of inBothTypes(attest({ payload }))) expect(await proven(proofs)).to.have.length(3);
  });

  it('and proofs and attested keys use algorithms that the tenant allows', async () => {
    client.configure({ batchSize: 5, algorithms: ['ES256', 'ES384'] });
    for (const proofs of inBothTypes(attest())) expect(await proven(proofs)).to.have.length(3);
    const other = newKey('P-384');
    for (const proofs of inBothTypes(attest({}, [first, other]))) expect(await proven(proofs)).to.have.length(2);
    client.configure({ batchSize: 5, algorithms: ['ES256'] });
    for (const proofs of inBothTypes(attest())) expect(await proven(proofs)).to.have.length(3);
    for (const proofs of inBothTypes(attest({}, [first, other]))) await expectRefusal(proofs);
    client.configure({ batchSize: 5, algorithms: ['ES384'] });
    for (const proofs of inBothTypes(attest())) await expectRefusal(proofs);
    await expectRefusal({ jwt: [proof({})] }, 'invalid_proof', {});
    await expectRefusal({ attestation: [attest({}, [other])] });
  });

  it('cover the key of the proof', async () => {
    await expectRefusal({ jwt: [proof({ key_attestation: attest({}, [second, third]) })] });
    // Without jwk and kid the key at index 0 verifies the proof.
    await expectRefusal({ jwt: [proof({ jwk: undefined, key_attestation: attest() }, {}, second)] });
    const wrong = proof({ jwk: undefined, kid: '1', key_attestation: attest() });
    await expectRefusal({ jwt: [wrong] });
  });

  it('accepts a batch whose proofs identify their keys by jwk, by kid and by neither', async () => {
    const text = attest();
    const proofs = [
      proof({ jwk: third.jwk, key_attestation: text }, {}, third),
      proof({ jwk: undefined, kid: '1', key_attestation: text }, {}, second),
      proof({ jwk: undefined, key_attestation: text }),
    ];
    expect(await proven({ jwt: proofs })).to.deep.equal(jwks(third, second, first));
  });

  it('rejects a batch if the jwk of one proof is not in attested_keys', async () => {
    const text = attest({}, [first, second]);
    const proofs = keys.map((key) => proof({ jwk: key.jwk, key_attestation: text }, {}, key));
    for (const configuration of [REQUIRED, {}]) await expectRefusal({ jwt: proofs }, 'invalid_proof', configuration);
    client.configure({ batchSize: 5, walletProviderTrustLists: [] });
    await expectRefusal({ jwt: proofs }, 'invalid_proof', {});
  });

  it('do not allow the same key in two proofs', async () => {
    const header = { key_attestation: attest() };
    await expectRefusal({ jwt: [proof(header), proof(header)] });
    const byName = proof({ jwk: undefined, kid: '0', ...header });
    await expectRefusal({ jwt: [proof(header), byName] });
  });

  describe('with a level that the configuration lists', () => {
    for (const level of ['key_storage', 'user_authentication'] as const) {
      const wants = (...values: string[]) => ({ keyAttestationsRequired: { [level]: values } });
      const says = (value: unknown) => inBothTypes(attest({ payload: { [level]: value } }));

      it(`are accepted as ${level}`, async () => {
        const accepted = wants('iso_18045_high', 'https://levels.example/high');
        for (const value of [['iso_18045_high'], ['other', 'https://levels.example/high']]) {
          for (const proofs of says(value)) expect(await proven(proofs, accepted)).to.have.length(3);
        }
        for (const value of [['iso_18045_moderate'], ['ISO_18045_HIGH'], undefined, []]) {
          for (const proofs of says(value)) await expectRefusal(proofs, 'invalid_proof', accepted);
        }
      });

      it(`are rejected for another level: ${level}`, async () => {
        for (const proofs of says(['iso_18045_high'])) {
          await expectRefusal(proofs, 'invalid_proof', wants('iso_18045_basic'));
        }
        for (const proofs of says(undefined)) expect(await proven(proofs)).to.have.length(3);
      });
    }
  });

  describe('with a nonce', () => {
    const stale = async (text: string) => {
      for (const proofs of inBothTypes(text)) await expectRefusal(proofs, 'invalid_nonce');
    };

    it('are accepted only with a valid nonce', async () => {
      await stale(attest({ nonce: 'invented' }));
      await stale(attest({ nonce: nonce('dpop') }));
      await stale(attest({ nonce: nonce('c_nonce', 'other') }));
    });

    it('are accepted for five minutes', async () => {
      const old = nonce();
      client.world.clock.time += 299_000;
      for (const proofs of inBothTypes(attest({ nonce: old }))) expect(await proven(proofs)).to.have.length(3);
      client.world.clock.time += 1_000;
      await stale(attest({ nonce: old }));
    });

    it('require a nonce in the proof, too', async () => {
      const header = { key_attestation: attest() };
      await expectRefusal({ jwt: [proof(header, { nonce: 'invented' })] }, 'invalid_nonce');
    });

    it('report every other fault before a wrong nonce', async () => {
      await stale(attest({ nonce: 'invented' }));
      for (const text of [
        attest({ nonce: 'invented', payload: { exp: 1 } }),
        attest({ nonce: 'invented', signer: { ...client.provider.signer, ...newKey() } }),
      ]) {
        for (const proofs of inBothTypes(text)) await expectRefusal(proofs);
      }
      const bad = proof({ key_attestation: attest({ nonce: 'invented' }, [second]) });
      await expectRefusal({ jwt: [bad] });
    });
  });

  describe('with a status', () => {
    const listed = (more: Options = {}) => attest({ ...more, payload: { status: client.provider.status(7), ...more.payload } });
    const asked = () => client.world.remote.calls.filter(({ url }) => url.endsWith('/status/1')).length;

    it('are accepted while the status list of the provider lists them as valid', async () => {
      for (const proofs of inBothTypes(listed())) expect(await proven(proofs)).to.have.length(3);
    });

    it('are rejected, with the key, when the list marks them as revoked', async () => {
      client.provider.statuses.set(7, 1);
      for (const proofs of inBothTypes(listed())) {
        const failure = await refusal(proofs);
        expect(failure.code).to.equal('invalid_proof');
      }
    });

    it('fetch the status list last, after all other checks', async () => {
      for (const text of [listed({ payload: { exp: 1 } }), listed({ nonce: 'invented' })]) {
        for (const proofs of inBothTypes(text)) await refusal(proofs);
      }
      expect(asked()).to.equal(0);
      await proven({ attestation: [listed()] });
      expect(asked()).to.equal(1);
    });

    it('are rejected if the status is unavailable', async () => {
      const status = { status_list: { idx: 7, uri: `${client.provider.url}/elsewhere` } };
      for (const proofs of inBothTypes(attest({ payload: { status } }))) await expectRefusal(proofs);
    });
  });

  describe('that are not required', () => {
    const untrusted = async () => ({ jwt: [proof({ key_attestation: attest({ signer: await stranger() }) })] });

    it('are verified if the tenant has trust lists', async () => {
      expect(await proven({ jwt: [proof({ key_attestation: attest() })] }, {})).to.have.length(3);
      await expectRefusal(await untrusted(), 'invalid_proof', {});
    });

    it('are ignored without trust lists, and only the proven key is used', async () => {
      client.configure({ walletProviderTrustLists: [], batchSize: 5 });
      expect(await proven(await untrusted(), {})).to.deep.equal(jwks(first));
      // OpenID4VCI 1.0 appendix D.1: that takes no trust
      await expectRefusal({ jwt: [proof({ key_attestation: 'x.y.z' })] }, 'invalid_proof', {});
      const ofOthers = attest({}, [newKey()]);
      await expectRefusal({ jwt: [proof({ key_attestation: ofOthers })] }, 'invalid_proof', {});
      const byName = proof({ jwk: undefined, kid: '0', key_attestation: attest({ nonce: 'stale' }) });
      expect(await proven({ jwt: [byName] }, {})).to.deep.equal(jwks(first));
      const impostor = proof({ jwk: undefined, kid: '1', key_attestation: attest() });
      await expectRefusal({ jwt: [impostor] }, 'invalid_proof', {});
      expect(client.world.remote.calls).to.deep.equal([]);
    });

    it('are rejected if they are required and no list is configured', async () => {
      client.configure({ walletProviderTrustLists: [], batchSize: 5 });
      for (const proofs of inBothTypes(attest())) await expectRefusal(proofs);
      await expectRefusal({ attestation: [attest()] }, 'invalid_proof', { proofTypes: ['attestation'] });
    });
  });

  it('are not fetched or verified for a plain proof', async () => {
    expect(await proven({ jwt: [proof({})] }, {})).to.deep.equal(jwks(first));
    expect(client.world.remote.calls).to.deep.equal([]);
  });
});
