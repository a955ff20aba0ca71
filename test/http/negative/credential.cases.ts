import { CompactEncrypt, importJWK } from 'jose';
import { keyProof, newKey, now, type RawWallet } from '../../support/raw-wallet.ts';
import type { Answer } from '../../support/test-service.ts';
import { accepted, type Case, getStrictToken, rejected, requestWith, requestWithProof, type World } from './world.ts';

const INVALID_PROOF = rejected('invalid_proof');
const INVALID_NONCE = rejected('invalid_nonce');
const INVALID_ENCRYPTION = rejected('invalid_encryption_parameters');

/** A credential request whose body is replaced as a whole. */
const body =
  (make: (wallet: RawWallet, nonce: string) => unknown) =>
  async (world: World): Promise<Answer> => {
    const { wallet, token } = await world.token();
    return wallet.request(token, 'card', { body: make(wallet, await wallet.nonce()) });
  };
const text =
  (content: string, type = 'application/json') =>
  async (world: World): Promise<Answer> => {
    const { wallet, token } = await world.token();
    const headers = { ...wallet.authorization(token), 'Content-Type': type };
    return wallet.request(token, 'card', { text: content, headers });
  };
const proofs =
  (make: (wallet: RawWallet, nonce: string) => unknown, id = 'card') =>
  (world: World) =>
    requestWith(world, make, id);
const changedProof = (changes: Parameters<typeof requestWithProof>[1]) => (world: World) => requestWithProof(world, changes);
const plainJwt = (wallet: RawWallet, nonce: string, count = 1) => ({
  jwt: Array.from({ length: count }, () => keyProof(newKey(), wallet.issuer, nonce)),
});

/** A `jwt` proof with a changed attestation for the configuration that requires attested keys. */
const withKeyAttestation =
  (
    options: Parameters<World['provider']['keyAttestation']>[1] | ((world: World) => Parameters<World['provider']['keyAttestation']>[1]),
    overrides: { readonly listed?: boolean } = {},
  ) =>
  (world: World): Promise<Answer> =>
    requestWith(
      world,
      (wallet, nonce) => {
        const key = newKey();
        const changes = typeof options === 'function' ? options(world) : options;
        const keys = overrides.listed === false ? [newKey()] : [key];
        const key_attestation = world.provider.keyAttestation(keys, { nonce, ...changes });
        return { jwt: [keyProof(key, wallet.issuer, nonce, { header: { key_attestation } })] };
      },
      'attested',
    );
const attestationProof = (make: (world: World, nonce: string) => string[]) => (world: World) =>
  requestWith(world, (_wallet, nonce) => ({ attestation: make(world, nonce) }), 'attested');

/** A request as a JWE for the issuer. */
async function encryptRequest(world: World, wallet: RawWallet, plaintext: object, header: Record<string, string> = {}): Promise<string> {
  const path = `/${wallet.tenant}/.well-known/openid-credential-issuer`;
  const metadata = (await world.service.call('GET', path)).body;
  const [jwk] = metadata.credential_request_encryption.jwks.keys;
  return new CompactEncrypt(new TextEncoder().encode(JSON.stringify(plaintext)))
    .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM', kid: jwk.kid, ...header })
    .encrypt(await importJWK(jwk, 'ECDH-ES'));
}

const RECIPIENT = { ...newKey().jwk, alg: 'ECDH-ES', kid: 'w-1' };

/** An encrypted request with `encryption` as response encryption. */
const encryptedRequest =
  (encryption: unknown, overrides: object = {}) =>
  async (world: World): Promise<Answer> => {
    const { wallet, token } = await world.token();
    const plaintext = {
      credential_configuration_id: 'card',
      proofs: plainJwt(wallet, await wallet.nonce()),
      ...(encryption === undefined ? {} : { credential_response_encryption: encryption }),
      ...overrides,
    };
    const headers = { ...wallet.authorization(token), 'Content-Type': 'application/jwt' };
    return wallet.request(token, 'card', { text: await encryptRequest(world, wallet, plaintext), headers });
  };

/** The credential endpoint. */
export const credentialCases: readonly Case[] = [
  { row: 91, title: 'text', run: text('{}', 'text/plain'), expected: rejected('invalid_credential_request') },
  { row: 91, title: 'broken JSON', run: text('{'), expected: rejected('invalid_credential_request') },
  { row: 91, title: 'an array', run: text('[]'), expected: rejected('invalid_credential_request') },
  { row: 91, title: 'a property twice', run: text('{"proofs":{},"proofs":{}}'), expected: rejected('invalid_credential_request') },
  {
    row: 92,
    title: 'both identifiers',
    run: body(() => ({ credential_configuration_id: 'card', credential_identifier: 'card' })),
    expected: rejected('invalid_credential_request'),
  },
  { row: 92, title: 'no identifier', run: body(() => ({})), expected: rejected('invalid_credential_request') },
  {
    row: 93,
    title: 'an unknown configuration',
    run: body(() => ({ credential_configuration_id: 'nothing' })),
    expected: rejected('unknown_credential_configuration'),
  },
  {
    row: 94,
    title: 'an unknown identifier',
    run: body(() => ({ credential_identifier: 'nothing' })),
    expected: rejected('unknown_credential_identifier'),
  },
  {
    row: 95,
    title: 'a configuration without an identifier in the token',
    run: async (world) => {
      const { uri } = await world.offer('open', ['card']);
      const wallet = world.wallet();
      const authorization_details = JSON.stringify([{ type: 'openid_credential', credential_configuration_id: 'card' }]);
      const token = await wallet.accessToken(uri, { authorization_details });
      return wallet.request(token, 'pass');
    },
    expected: { status: 403, error: 'insufficient_scope', headers: { 'www-authenticate': /insufficient_scope/ } },
  },
  {
    row: 96,
    title: 'a configuration that the token does not cover',
    run: async (world) => {
      const { wallet, token } = await world.token();
      return wallet.request(token, 'pass');
    },
    expected: { status: 403, error: 'insufficient_scope', headers: { 'www-authenticate': /insufficient_scope/ } },
  },
  { row: 97, title: 'no proofs', run: body(() => ({ credential_configuration_id: 'card' })), expected: INVALID_PROOF },
  { row: 97, title: 'proofs of no type', run: proofs(() => ({})), expected: INVALID_PROOF },
  { row: 97, title: 'an empty array of proofs', run: proofs(() => ({ jwt: [] })), expected: INVALID_PROOF },
  {
    row: 97,
    title: 'proofs of two types',
    run: proofs((wallet, nonce) => ({ ...plainJwt(wallet, nonce), attestation: ['x'] })),
    expected: INVALID_PROOF,
  },
  { row: 97, title: 'proofs of an unknown type', run: proofs(() => ({ ldp_vp: [{}] })), expected: INVALID_PROOF },
  { row: 98, title: 'proofs where no key is bound', run: proofs(() => ({ jwt: ['garbage'] }), 'unbound'), expected: accepted() },
  {
    row: 99,
    title: 'a single proof as drafts had it',
    run: body((wallet, nonce) => ({
      credential_configuration_id: 'card',
      proof: { proof_type: 'jwt', jwt: plainJwt(wallet, nonce).jwt[0] },
    })),
    expected: INVALID_PROOF,
  },
  {
    row: 100,
    title: 'more proofs than the batch size',
    run: proofs((wallet, nonce) => plainJwt(wallet, nonce, 4)),
    expected: rejected('invalid_credential_request'),
  },
  {
    row: 101,
    title: 'a broken signature',
    run: proofs((wallet, nonce) => ({ jwt: [keyProof(newKey(), wallet.issuer, nonce).replace(/.{4}$/, 'AAAA')] })),
    expected: INVALID_PROOF,
  },
  { row: 102, title: 'a wrong typ', run: changedProof({ header: { typ: 'JWT' } }), expected: INVALID_PROOF },
  { row: 102, title: 'an algorithm that is not listed', run: changedProof({ header: { alg: 'RS256' } }), expected: INVALID_PROOF },
  { row: 102, title: 'a private key', run: changedProof({ header: { jwk: { ...newKey().jwk, d: 'secret' } } }), expected: INVALID_PROOF },
  { row: 102, title: 'jwk and kid', run: changedProof({ header: { kid: 'x' } }), expected: INVALID_PROOF },
  {
    row: 103,
    title: 'the credential endpoint as audience',
    run: (world) => requestWithProof(world, { payload: { aud: `${world.wallet().issuer}/credential` } }),
    expected: INVALID_PROOF,
  },
  {
    row: 103,
    title: 'the issuer with a slash as audience',
    run: (world) => requestWithProof(world, { payload: { aud: `${world.wallet().issuer}/` } }),
    expected: INVALID_PROOF,
  },
  { row: 104, title: 'no nonce', run: changedProof({ payload: { nonce: undefined } }), expected: INVALID_PROOF },
  { row: 105, title: 'an invented nonce', run: changedProof({ payload: { nonce: 'invented' } }), expected: INVALID_NONCE },
  {
    row: 105,
    title: 'a nonce that has expired',
    run: async (world) => {
      const { wallet, token } = await world.token();
      const nonce = await wallet.nonce();
      return world.later(301, () => {
        const payload = { iat: now() + 301 };
        const proof = keyProof(newKey(), wallet.issuer, nonce, { payload });
        return wallet.request(token, 'card', {
          body: { credential_configuration_id: 'card', proofs: { jwt: [proof] } },
          headers: wallet.authorization(token, { payload }),
        });
      });
    },
    expected: INVALID_NONCE,
  },
  {
    row: 105,
    title: 'a nonce that was used',
    run: async (world) => {
      const { wallet, token } = await world.token();
      const nonce = await wallet.nonce();
      await wallet.request(token, 'card', { nonce });
      return wallet.request(token, 'card', { nonce });
    },
    expected: INVALID_NONCE,
  },
  {
    row: 105,
    title: 'the nonce of another tenant',
    run: async (world) => {
      const { wallet, token } = await world.token();
      return wallet.request(token, 'card', { nonce: await world.wallet('plain').nonce() });
    },
    expected: INVALID_NONCE,
  },
  {
    row: 106,
    title: 'a broken signature and an invented nonce',
    run: proofs((wallet) => ({ jwt: [keyProof(newKey(), wallet.issuer, 'invented').replace(/.{4}$/, 'AAAA')] })),
    expected: INVALID_PROOF,
  },
  { row: 107, title: 'a proof of an hour ago', run: changedProof({ payload: { iat: now() - 3600 } }), expected: INVALID_PROOF },
  {
    row: 108,
    title: 'an iss that is not a string in the proof of an anonymous wallet',
    run: changedProof({ payload: { iss: ['wallet'] } }),
    expected: INVALID_PROOF,
  },
  {
    row: 108,
    title: 'iss of another client',
    run: async (world) => {
      const wallet = world.wallet();
      const { request_uri } = (await wallet.par({ scope: 'scope-card' })).body;
      const { access_token } = (await wallet.redeemCode(await wallet.authorize(request_uri))).body;
      const proof = keyProof(newKey(), wallet.issuer, await wallet.nonce(), { payload: { iss: 'other' } });
      const request = { credential_configuration_id: 'card', proofs: { jwt: [proof] } };
      return wallet.request(access_token, 'card', { body: request });
    },
    expected: INVALID_PROOF,
  },
  {
    row: 109,
    title: 'one key in two proofs',
    run: proofs((wallet, nonce) => {
      const key = newKey();
      return { jwt: [keyProof(key, wallet.issuer, nonce), keyProof(key, wallet.issuer, nonce)] };
    }),
    expected: INVALID_PROOF,
  },
  { row: 110, title: 'no attestation of the key', run: proofs(plainJwt, 'attested'), expected: INVALID_PROOF },
  {
    row: 111,
    title: 'an attestation of keys with a broken signature',
    run: (world) =>
      requestWith(
        world,
        (wallet, nonce) => {
          const key = newKey();
          const key_attestation = world.provider.keyAttestation([key], { nonce }).replace(/.{4}$/, 'AAAA');
          return { jwt: [keyProof(key, wallet.issuer, nonce, { header: { key_attestation } })] };
        },
        'attested',
      ),
    expected: INVALID_PROOF,
  },
  {
    row: 111,
    title: 'an attestation of a provider on no list',
    run: withKeyAttestation(({ provider }) => ({ signer: provider.operator })),
    expected: INVALID_PROOF,
  },
  {
    row: 111,
    title: 'an attestation of keys that has expired',
    run: withKeyAttestation({ payload: { exp: now() - 70 } }),
    expected: INVALID_PROOF,
  },
  {
    row: 111,
    title: 'an attestation of keys without exp',
    run: withKeyAttestation({ payload: { exp: undefined } }),
    expected: INVALID_PROOF,
  },
  { row: 111, title: 'an attestation of no keys', run: withKeyAttestation({ payload: { attested_keys: [] } }), expected: INVALID_PROOF },
  { row: 112, title: 'a key that the attestation does not list', run: withKeyAttestation({}, { listed: false }), expected: INVALID_PROOF },
  {
    row: 113,
    title: 'keys with a lower level of key storage',
    run: withKeyAttestation({ payload: { key_storage: ['iso_18045_basic'] } }),
    expected: INVALID_PROOF,
  },
  {
    row: 113,
    title: 'an attestation that does not say how users authenticate',
    run: withKeyAttestation({ payload: { user_authentication: undefined } }),
    expected: INVALID_PROOF,
  },
  {
    row: 114,
    title: 'two attestations as proofs',
    run: attestationProof(({ provider }, nonce) => [
      provider.keyAttestation([newKey()], { nonce }),
      provider.keyAttestation([newKey()], { nonce }),
    ]),
    expected: INVALID_PROOF,
  },
  {
    row: 115,
    title: 'an attestation as proof with a stale nonce',
    run: attestationProof(({ provider }) => [provider.keyAttestation([newKey()], { nonce: 'stale' })]),
    expected: INVALID_NONCE,
  },
  {
    row: 116,
    title: 'no response encryption where it is required',
    run: async (world) => {
      const { wallet, token } = await getStrictWallet(world);
      const plaintext = { credential_configuration_id: 'card', proofs: plainJwt(wallet, await wallet.nonce()) };
      return strictRequest(wallet, token, await encryptRequest(world, wallet, plaintext), 'application/jwt');
    },
    expected: INVALID_ENCRYPTION,
  },
  { row: 117, title: 'an enc that is not listed', run: encryptedRequest({ jwk: RECIPIENT, enc: 'A192GCM' }), expected: INVALID_ENCRYPTION },
  { row: 117, title: 'a JWK without alg', run: encryptedRequest({ jwk: newKey().jwk, enc: 'A256GCM' }), expected: INVALID_ENCRYPTION },
  {
    row: 117,
    title: 'a private JWK',
    run: encryptedRequest({ jwk: { ...RECIPIENT, d: 'secret' }, enc: 'A256GCM' }),
    expected: INVALID_ENCRYPTION,
  },
  { row: 117, title: 'an unknown zip', run: encryptedRequest({ jwk: RECIPIENT, enc: 'A256GCM', zip: 'GZ' }), expected: INVALID_ENCRYPTION },
  {
    row: 118,
    title: 'response encryption inside a plain request',
    run: body((wallet, nonce) => ({
      credential_configuration_id: 'card',
      proofs: plainJwt(wallet, nonce),
      credential_response_encryption: { jwk: RECIPIENT, enc: 'A256GCM' },
    })),
    expected: INVALID_ENCRYPTION,
  },
  {
    row: 119,
    title: 'a plain request where encryption is required',
    run: async (world) => {
      const { wallet, token } = await getStrictWallet(world);
      return strictRequest(wallet, token, '{}', 'application/json');
    },
    expected: INVALID_ENCRYPTION,
  },
  {
    row: 120,
    title: 'a JWE for an unknown key',
    run: async (world) => {
      const { wallet, token } = await world.token();
      const jwe = await encryptRequest(world, wallet, {}, { kid: 'unknown' });
      const headers = { ...wallet.authorization(token), 'Content-Type': 'application/jwt' };
      return wallet.request(token, 'card', { text: jwe, headers });
    },
    expected: INVALID_ENCRYPTION,
  },
  {
    row: 121,
    title: 'an unencrypted error in spite of requested encryption',
    run: encryptedRequest({ jwk: RECIPIENT, enc: 'A256GCM' }, { proofs: { jwt: ['garbage'] } }),
    expected: { status: 400, error: 'invalid_proof', headers: { 'content-type': /^application\/json$/ } },
  },
  {
    row: 122,
    title: 'a backend that rejects the request',
    run: async (world) => {
      world.backend.on('/claims', { json: {} });
      const { wallet, token } = await world.token(['hooked']);
      return wallet.request(token, 'hooked');
    },
    expected: rejected('credential_request_denied'),
  },
  {
    row: 122,
    title: 'a session that was revoked',
    run: async (world) => {
      const { wallet, token, session } = await world.token();
      await wallet.request(token, 'card');
      await world.admin('open', 'POST', '/session/revoke', { sessionId: session, status: 1 });
      return wallet.request(token, 'card');
    },
    expected: rejected('credential_request_denied'),
  },
  {
    // The session fails after one attempt, as documented, instead of the status 503.
    row: 123,
    title: 'a backend that cannot be reached',
    run: async (world) => {
      world.backend.on('/claims', (response) => response.destroy());
      const { wallet, token } = await world.token(['hooked']);
      return wallet.request(token, 'hooked');
    },
    expected: rejected('credential_request_denied'),
  },
];

async function getStrictWallet(world: World): Promise<{ wallet: RawWallet; token: string }> {
  const wallet = world.wallet('strict');
  return { wallet, token: await getStrictToken(world, wallet) };
}

async function strictRequest(wallet: RawWallet, token: string, content: string, type: string): Promise<Answer> {
  const probe = await wallet.request(token, 'card', { body: {} });
  const nonce = probe.headers.get('dpop-nonce') ?? '';
  const headers = { ...wallet.authorization(token, { payload: { nonce } }), 'Content-Type': type };
  return wallet.request(token, 'card', { text: content, headers });
}
