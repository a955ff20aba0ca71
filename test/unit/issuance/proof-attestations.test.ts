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
  const attest = (options: Options = {}, holderKeys: readonly HolderKey[] = keys) =>
    client.provider.keyAttestation(holderKeys, { nonce: nonce(), ...options });
  const proof = (header: Record<string, unknown>, payload: Record<string, unknown> = {}, key = first) =>
    keyProof(key, SERVER, nonce(), { header, payload: { iat: client.world.seconds, ...payload } });

  const prove = (proofs: JsonObject, configuration: object = REQUIRED) =>
    holderKeys.verifyProofs(client.tenant, aConfiguration({ ...configuration }), { proofs }, undefined, client.now);
  const provenKeys = async (proofs: JsonObject, configuration?: object) => (await prove(proofs, configuration)).holderKeys;
  const failureOf = async (proofs: JsonObject, configuration?: object): Promise<Failure> => {
    try {
      await prove(proofs, configuration);
    } catch (error) {
      if (error instanceof Failure) return error;
      throw error;
    }
    throw new Error('nothing failed');
  };
  const expectRefusal = async (proofs: JsonObject, code = 'invalid_proof', configuration?: object) =>
    expect((await failureOf(proofs, configuration)).code).to.equal(code);
  const jwks = (...selected: readonly HolderKey[]) => selected.map(({ jwk }) => jwk);
  const inBothTypes = (text: string): JsonObject[] => [{ attestation: [text] }, { jwt: [proof({ key_attestation: text })] }];

  it('yield a key for each credential, the proven ones first', async () => {
    expect(await provenKeys({ attestation: [attest()] })).to.deep.equal(jwks(...keys));
    expect(await provenKeys({ jwt: [proof({ jwk: third.jwk, key_attestation: attest() }, {}, third)] })).to.deep.equal(
      jwks(third, first, second),
    );
    const withoutKey = proof({ jwk: undefined, key_attestation: attest() });
    expect(await provenKeys({ jwt: [withoutKey] })).to.deep.equal(jwks(...keys));
    const byKid = proof({ jwk: undefined, kid: '1', key_attestation: attest() }, {}, second);
    expect(await provenKeys({ jwt: [byKid] })).to.deep.equal(jwks(second, first, third));
  });

  it('yield no more keys than a batch', async () => {
    client.configure({ batchSize: 2 });
    expect(await provenKeys({ attestation: [attest()] })).to.deep.equal(jwks(first, second));
    const third_ = proof({ jwk: third.jwk, key_attestation: attest() }, {}, third);
    expect(await provenKeys({ jwt: [third_] })).to.deep.equal(jwks(third, first));
    for (const batchSize of [0, 1]) {
      client.configure({ batchSize });
      expect(await provenKeys({ attestation: [attest()] })).to.deep.equal(jwks(first));
      expect(await provenKeys({ jwt: [proof({ key_attestation: attest() })] })).to.deep.equal(jwks(first));
    }
  });

  it('may be one for several proofs, or one for each', async () => {
    const text = attest();
    const proofs = [first, second].map((key) => proof({ jwk: key.jwk, key_attestation: text }, {}, key));
    expect(await provenKeys({ jwt: proofs })).to.deep.equal(jwks(first, second, third));
    const separate = [first, second].map((key) => proof({ jwk: key.jwk, key_attestation: attest({}, [key]) }, {}, key));
    expect(await provenKeys({ jwt: separate })).to.deep.equal(jwks(first, second));
  });

  it('have all their nonces consumed together with those of the proofs', async () => {
    const [first, second] = [nonce(), nonce()];
    const header = { key_attestation: attest({ nonce: first }) };
    expect((await prove({ jwt: [proof(header, { nonce: first })] })).used).to.have.length(1);
    const { used } = await prove({ jwt: [proof(header, { nonce: second })] });
    expect(used.map(({ kind }) => kind)).to.deep.equal(['c_nonce', 'c_nonce']);
    expect(new Set(used.map(({ hash }) => hash)).size).to.equal(2);
    expect((await prove({ attestation: [attest({ nonce: first })] })).used).to.have.length(1);
  });

  it('are required in each proof if the configuration requires them', async () => {
    await expectRefusal({ jwt: [proof({})] });
    const valid = proof({ key_attestation: attest() });
    await expectRefusal({ jwt: [valid, proof({ jwk: second.jwk }, {}, second)] });
    expect(await provenKeys({ jwt: [proof({})] }, {})).to.deep.equal(jwks(first));
  });

  const mutations: [string, () => Options | Promise<Options>][] = [
    ['of the draft typ', () => ({ header: { typ: 'keyattestation+jwt' } })],
    ['of an alg that is not allowed for signatures', () => ({ header: { alg: 'none' } })],
    ['of an nbf that is not a number', () => ({ payload: { nbf: 'soon' } })],
    ['of no typ', () => ({ header: { typ: undefined } })],
    ['of alg none', () => ({ header: { alg: 'none' } })],
    ['of alg HS256', () => ({ header: { alg: 'HS256' } })],
    ['of an alg that does not match its key', () => ({ header: { alg: 'ES384' } })],
    ['with a critical extension', () => ({ header: { crit: ['x'], x: 1 } })],
    ['without x5c', () => ({ header: { x5c: undefined } })],
    ['with kid instead of x5c', () => ({ header: { x5c: undefined, kid: 'provider' } })],
    ['with trust_chain instead of x5c', () => ({ header: { x5c: undefined, trust_chain: ['x'] } })],
    ['with an empty x5c', () => ({ header: { x5c: [] } })],
    ['with x5c of nonsense', () => ({ header: { x5c: ['AAAA'] } })],
    ['with the anchor in x5c', () => ({ header: { x5c: x5c('signer', 'root') } })],
    ['by a self-signed leaf', async () => ({ signer: await certify({ name: 'Self-signed' }) })],
    [
      'by a web server of the provider',
      async () => ({ signer: await certify({ name: 'Web', by: client.provider.root, purposes: [WEB_SERVER] }) }),
    ],
    ['by the anchor itself', () => ({ signer: client.provider.root })],
    ['by an untrusted provider', async () => ({ signer: await untrustedSigner() })],
    ['by another key than in x5c', () => ({ header: { x5c: x5c('revocationSigner') } })],
    ['with an invalid signature', async () => ({ signer: { ...client.provider.signer, ...newKey() } })],
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
    ['with an unsupported key', () => ({ payload: { attested_keys: [first.jwk, { kty: 'RSA', n: 'x', e: 'AQAB' }] } })],
    ['with key_storage as text', () => ({ payload: { key_storage: 'iso_18045_high' } })],
    ['with an empty key_storage', () => ({ payload: { key_storage: [] } })],
    ['with user_authentication of numbers', () => ({ payload: { user_authentication: [1] } })],
    ['with a nonce that is not a string', () => ({ payload: { nonce: 5 } })],
    ['with a nonce that is null', () => ({ payload: { nonce: null } })],
    ['with an empty nonce', () => ({ payload: { nonce: '' } })],
    ['with a broken status', () => ({ payload: { status: { status_list: { idx: -1 } } } })],
    ['with an unknown status', () => ({ payload: { status: { other: 1 } } })],
  ];
  const x5c = (...names: ('signer' | 'root' | 'revocationSigner')[]) => names.map((name) => client.provider[name].certificate);
  const untrustedSigner = async () => certify({ name: 'Wallet Provider', by: await certify({ name: 'Wallet CA', ca: true }) });
  for (const [description, mutate] of mutations) {
    it(`are rejected: ${description}`, async () => {
      const text = attest(await mutate());
      for (const proofs of inBothTypes(text)) await expectRefusal(proofs);
    });
  }

  it('that do not expire are accepted alone, but not with a proof', async () => {
    const text = attest({ payload: { exp: undefined } });
    expect(await provenKeys({ attestation: [text] })).to.deep.equal(jwks(...keys));
    await expectRefusal({ jwt: [proof({ key_attestation: text })] });
  });

  it('need a nonce as a separate proof, but not in a proof of type jwt', async () => {
    const text = attest({ payload: { nonce: undefined } });
    await expectRefusal({ attestation: [text] });
    const { holderKeys: proven_, used } = await prove({ jwt: [proof({ key_attestation: text })] });
    expect(proven_).to.deep.equal(jwks(...keys));
    expect(used).to.have.length(1);
    // An attestation without a nonce can be used again with a proof that has a nonce.
    expect(await provenKeys({ jwt: [proof({ key_attestation: text })] })).to.have.length(3);
    await expectRefusal({ jwt: [proof({ key_attestation: text }, { nonce: undefined })] });
    await expectRefusal({ jwt: [proof({ key_attestation: text }, { nonce: 'invented' })] }, 'invalid_nonce');
  });

  it('are accepted with a clock that is a little ahead or behind', async () => {
    const { seconds } = client.world;
    const payload = { iat: seconds + 8, nbf: seconds + 8, exp: seconds - 59 };
    for (const proofs of inBothTypes(attest({ payload }))) expect(await provenKeys(proofs)).to.have.length(3);
  });

  it('and proofs and attested keys use algorithms that the tenant allows', async () => {
    client.configure({ batchSize: 5, algorithms: ['ES256', 'ES384'] });
    for (const proofs of inBothTypes(attest())) expect(await provenKeys(proofs)).to.have.length(3);
    const second = newKey('P-384');
    for (const proofs of inBothTypes(attest({}, [first, second]))) expect(await provenKeys(proofs)).to.have.length(2);
    client.configure({ batchSize: 5, algorithms: ['ES256'] });
    for (const proofs of inBothTypes(attest())) expect(await provenKeys(proofs)).to.have.length(3);
    for (const proofs of inBothTypes(attest({}, [first, second]))) await expectRefusal(proofs);
    client.configure({ batchSize: 5, algorithms: ['ES384'] });
    for (const proofs of inBothTypes(attest())) await expectRefusal(proofs);
    await expectRefusal({ jwt: [proof({})] }, 'invalid_proof', {});
    await expectRefusal({ attestation: [attest({}, [second])] });
  });

  it('cover the key of the proof', async () => {
    await expectRefusal({ jwt: [proof({ key_attestation: attest({}, [second, third]) })] });
    // Without jwk and kid the key at index 0 verifies the proof.
    await expectRefusal({ jwt: [proof({ jwk: undefined, key_attestation: attest() }, {}, second)] });
    const wrongKid = proof({ jwk: undefined, kid: '1', key_attestation: attest() });
    await expectRefusal({ jwt: [wrongKid] });
  });

  it('accepts a batch whose proofs identify their keys by jwk, by kid and by neither', async () => {
    const text = attest();
    const proofs = [
      proof({ jwk: third.jwk, key_attestation: text }, {}, third),
      proof({ jwk: undefined, kid: '1', key_attestation: text }, {}, second),
      proof({ jwk: undefined, key_attestation: text }),
    ];
    expect(await provenKeys({ jwt: proofs })).to.deep.equal(jwks(third, second, first));
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
    const byKid = proof({ jwk: undefined, kid: '0', ...header });
    await expectRefusal({ jwt: [proof(header), byKid] });
  });

  describe('with a level that the configuration lists', () => {
    for (const level of ['key_storage', 'user_authentication'] as const) {
      const requirement = (...values: string[]) => ({ keyAttestationsRequired: { [level]: values } });
      const withLevel = (value: unknown) => inBothTypes(attest({ payload: { [level]: value } }));

      it(`are accepted as ${level}`, async () => {
        const accepted = requirement('iso_18045_high', 'https://levels.example/high');
        for (const value of [['iso_18045_high'], ['other', 'https://levels.example/high']]) {
          for (const proofs of withLevel(value)) expect(await provenKeys(proofs, accepted)).to.have.length(3);
        }
        for (const value of [['iso_18045_moderate'], ['ISO_18045_HIGH'], undefined, []]) {
          for (const proofs of withLevel(value)) await expectRefusal(proofs, 'invalid_proof', accepted);
        }
      });

      it(`are rejected for another level: ${level}`, async () => {
        for (const proofs of withLevel(['iso_18045_high'])) {
          await expectRefusal(proofs, 'invalid_proof', requirement('iso_18045_basic'));
        }
        for (const proofs of withLevel(undefined)) expect(await provenKeys(proofs)).to.have.length(3);
      });
    }
  });

  describe('with a nonce', () => {
    const expectStale = async (text: string) => {
      for (const proofs of inBothTypes(text)) await expectRefusal(proofs, 'invalid_nonce');
    };

    it('are accepted only with a valid nonce', async () => {
      await expectStale(attest({ nonce: 'invented' }));
      await expectStale(attest({ nonce: nonce('dpop') }));
      await expectStale(attest({ nonce: nonce('c_nonce', 'other') }));
    });

    it('are accepted for five minutes', async () => {
      const oldNonce = nonce();
      client.world.clock.time += 299_000;
      for (const proofs of inBothTypes(attest({ nonce: oldNonce }))) expect(await provenKeys(proofs)).to.have.length(3);
      client.world.clock.time += 1_000;
      await expectStale(attest({ nonce: oldNonce }));
    });

    it('require a nonce in the proof, too', async () => {
      const header = { key_attestation: attest() };
      await expectRefusal({ jwt: [proof(header, { nonce: 'invented' })] }, 'invalid_nonce');
    });

    it('report every other fault before a wrong nonce', async () => {
      await expectStale(attest({ nonce: 'invented' }));
      for (const text of [
        attest({ nonce: 'invented', payload: { exp: 1 } }),
        attest({ nonce: 'invented', signer: { ...client.provider.signer, ...newKey() } }),
      ]) {
        for (const proofs of inBothTypes(text)) await expectRefusal(proofs);
      }
      const invalid = proof({ key_attestation: attest({ nonce: 'invented' }, [second]) });
      await expectRefusal({ jwt: [invalid] });
    });
  });

  describe('with a status', () => {
    const withStatus = (options: Options = {}) =>
      attest({ ...options, payload: { status: client.provider.status(7), ...options.payload } });
    const statusListRequests = () => client.world.remote.calls.filter(({ url }) => url.endsWith('/status/1')).length;

    it('are accepted while the status list of the provider lists them as valid', async () => {
      for (const proofs of inBothTypes(withStatus())) expect(await provenKeys(proofs)).to.have.length(3);
    });

    it('are rejected, with the key, when the list marks them as revoked', async () => {
      client.provider.statuses.set(7, 1);
      for (const proofs of inBothTypes(withStatus())) {
        const failure = await failureOf(proofs);
        expect(failure.code).to.equal('invalid_proof');
      }
    });

    it('fetch the status list last, after all other checks', async () => {
      for (const text of [withStatus({ payload: { exp: 1 } }), withStatus({ nonce: 'invented' })]) {
        for (const proofs of inBothTypes(text)) await failureOf(proofs);
      }
      expect(statusListRequests()).to.equal(0);
      await provenKeys({ attestation: [withStatus()] });
      expect(statusListRequests()).to.equal(1);
    });

    it('are rejected if the status is unavailable', async () => {
      const status = { status_list: { idx: 7, uri: `${client.provider.url}/elsewhere` } };
      for (const proofs of inBothTypes(attest({ payload: { status } }))) await expectRefusal(proofs);
    });
  });

  describe('that are not required', () => {
    const untrusted = async () => ({ jwt: [proof({ key_attestation: attest({ signer: await untrustedSigner() }) })] });

    it('are verified if the tenant has trust lists', async () => {
      expect(await provenKeys({ jwt: [proof({ key_attestation: attest() })] }, {})).to.have.length(3);
      await expectRefusal(await untrusted(), 'invalid_proof', {});
    });

    it('are ignored without trust lists, and only the proven key is used', async () => {
      client.configure({ walletProviderTrustLists: [], batchSize: 5 });
      expect(await provenKeys(await untrusted(), {})).to.deep.equal(jwks(first));
      // OpenID4VCI 1.0 appendix D.1: this check needs no trust list
      await expectRefusal({ jwt: [proof({ key_attestation: 'x.y.z' })] }, 'invalid_proof', {});
      const otherKeys = attest({}, [newKey()]);
      await expectRefusal({ jwt: [proof({ key_attestation: otherKeys })] }, 'invalid_proof', {});
      const byKid = proof({ jwk: undefined, kid: '0', key_attestation: attest({ nonce: 'stale' }) });
      expect(await provenKeys({ jwt: [byKid] }, {})).to.deep.equal(jwks(first));
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
    expect(await provenKeys({ jwt: [proof({})] }, {})).to.deep.equal(jwks(first));
    expect(client.world.remote.calls).to.deep.equal([]);
  });
});
