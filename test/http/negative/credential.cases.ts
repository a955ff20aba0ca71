import { CompactEncrypt, importJWK } from 'jose';
import { keyProof, newKey, now, type RawWallet } from '../../support/raw-wallet.ts';
import type { Answer } from '../../support/test-service.ts';
import { accepted, type Case, refused, requestBent, requestWith, strictTokens, type World } from './world.ts';

const INVALID_PROOF = refused('invalid_proof');
const INVALID_NONCE = refused('invalid_nonce');
const INVALID_ENCRYPTION = refused('invalid_encryption_parameters');

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
const bent = (bend: Parameters<typeof requestBent>[1]) => (world: World) => requestBent(world, bend);
const plainJwt = (wallet: RawWallet, nonce: string, count = 1) => ({
  jwt: Array.from({ length: count }, () => keyProof(newKey(), wallet.issuer, nonce)),
});

/** A `jwt` proof for the configuration that demands attested keys, the attestation being bent. */
const attested =
  (
    options: Parameters<World['provider']['keyAttestation']>[1] | ((world: World) => Parameters<World['provider']['keyAttestation']>[1]),
    more: { readonly listed?: boolean } = {},
  ) =>
  (world: World): Promise<Answer> =>
    requestWith(
      world,
      (wallet, nonce) => {
        const key = newKey();
        const chosen = typeof options === 'function' ? options(world) : options;
        const keys = more.listed === false ? [newKey()] : [key];
        const key_attestation = world.provider.keyAttestation(keys, { nonce, ...chosen });
        return { jwt: [keyProof(key, wallet.issuer, nonce, { header: { key_attestation } })] };
      },
      'attested',
    );
const attestationProof = (make: (world: World, nonce: string) => string[]) => (world: World) =>
  requestWith(world, (_wallet, nonce) => ({ attestation: make(world, nonce) }), 'attested');

/** A request as a JWE for the issuer. */
async function encrypted(world: World, wallet: RawWallet, plaintext: object, header: Record<string, string> = {}): Promise<string> {
  const path = `/${wallet.tenant}/.well-known/openid-credential-issuer`;
  const metadata = (await world.service.call('GET', path)).body;
  const [jwk] = metadata.credential_request_encryption.jwks.keys;
  return new CompactEncrypt(new TextEncoder().encode(JSON.stringify(plaintext)))
    .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM', kid: jwk.kid, ...header })
    .encrypt(await importJWK(jwk, 'ECDH-ES'));
}

const RECIPIENT = { ...newKey().jwk, alg: 'ECDH-ES', kid: 'w-1' };

/** An encrypted request whose response is to be encrypted as `encryption` says. */
const sealed =
  (encryption: unknown, more: object = {}) =>
  async (world: World): Promise<Answer> => {
    const { wallet, token } = await world.token();
    const plaintext = {
      credential_configuration_id: 'card',
      proofs: plainJwt(wallet, await wallet.nonce()),
      ...(encryption === undefined ? {} : { credential_response_encryption: encryption }),
      ...more,
    };
    const headers = { ...wallet.authorization(token), 'Content-Type': 'application/jwt' };
    return wallet.request(token, 'card', { text: await encrypted(world, wallet, plaintext), headers });
  };

/** The credential endpoint. */
export const credentialCases: readonly Case[] = [
  { row: 91, what: 'text', run: text('{}', 'text/plain'), expected: refused('invalid_credential_request') },
  { row: 91, what: 'broken JSON', run: text('{'), expected: refused('invalid_credential_request') },
  { row: 91, what: 'an array', run: text('[]'), expected: refused('invalid_credential_request') },
  { row: 91, what: 'a property twice', run: text('{"proofs":{},"proofs":{}}'), expected: refused('invalid_credential_request') },
  {
    row: 92,
    what: 'both identifiers',
    run: body(() => ({ credential_configuration_id: 'card', credential_identifier: 'card' })),
    expected: refused('invalid_credential_request'),
  },
  { row: 92, what: 'no identifier', run: body(() => ({})), expected: refused('invalid_credential_request') },
  {
    row: 93,
    what: 'an unknown configuration',
    run: body(() => ({ credential_configuration_id: 'nothing' })),
    expected: refused('unknown_credential_configuration'),
  },
  {
    row: 94,
    what: 'an unknown identifier',
    run: body(() => ({ credential_identifier: 'nothing' })),
    expected: refused('unknown_credential_identifier'),
  },
  {
    row: 95,
    what: 'a configuration that no identifier of the token stands for',
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
    what: 'a configuration that the token does not cover',
    run: async (world) => {
      const { wallet, token } = await world.token();
      return wallet.request(token, 'pass');
    },
    expected: { status: 403, error: 'insufficient_scope', headers: { 'www-authenticate': /insufficient_scope/ } },
  },
  { row: 97, what: 'no proofs', run: body(() => ({ credential_configuration_id: 'card' })), expected: INVALID_PROOF },
  { row: 97, what: 'proofs of no type', run: proofs(() => ({})), expected: INVALID_PROOF },
  { row: 97, what: 'an empty array of proofs', run: proofs(() => ({ jwt: [] })), expected: INVALID_PROOF },
  {
    row: 97,
    what: 'proofs of two types',
    run: proofs((wallet, nonce) => ({ ...plainJwt(wallet, nonce), attestation: ['x'] })),
    expected: INVALID_PROOF,
  },
  { row: 97, what: 'proofs of an unknown type', run: proofs(() => ({ ldp_vp: [{}] })), expected: INVALID_PROOF },
  { row: 98, what: 'proofs where no key is bound', run: proofs(() => ({ jwt: ['garbage'] }), 'unbound'), expected: accepted() },
  {
    row: 99,
    what: 'a single proof as drafts had it',
    run: body((wallet, nonce) => ({
      credential_configuration_id: 'card',
      proof: { proof_type: 'jwt', jwt: plainJwt(wallet, nonce).jwt[0] },
    })),
    expected: INVALID_PROOF,
  },
  {
    row: 100,
    what: 'more proofs than a batch holds',
    run: proofs((wallet, nonce) => plainJwt(wallet, nonce, 4)),
    expected: refused('invalid_credential_request'),
  },
  {
    row: 101,
    what: 'a broken signature',
    run: proofs((wallet, nonce) => ({ jwt: [keyProof(newKey(), wallet.issuer, nonce).replace(/.{4}$/, 'AAAA')] })),
    expected: INVALID_PROOF,
  },
  { row: 102, what: 'a wrong typ', run: bent({ header: { typ: 'JWT' } }), expected: INVALID_PROOF },
  { row: 102, what: 'an algorithm that is not listed', run: bent({ header: { alg: 'RS256' } }), expected: INVALID_PROOF },
  { row: 102, what: 'a private key', run: bent({ header: { jwk: { ...newKey().jwk, d: 'secret' } } }), expected: INVALID_PROOF },
  { row: 102, what: 'jwk and kid', run: bent({ header: { kid: 'x' } }), expected: INVALID_PROOF },
  {
    row: 103,
    what: 'the credential endpoint as audience',
    run: (world) => requestBent(world, { payload: { aud: `${world.wallet().issuer}/credential` } }),
    expected: INVALID_PROOF,
  },
  {
    row: 103,
    what: 'the issuer with a slash as audience',
    run: (world) => requestBent(world, { payload: { aud: `${world.wallet().issuer}/` } }),
    expected: INVALID_PROOF,
  },
  { row: 104, what: 'no nonce', run: bent({ payload: { nonce: undefined } }), expected: INVALID_PROOF },
  { row: 105, what: 'an invented nonce', run: bent({ payload: { nonce: 'invented' } }), expected: INVALID_NONCE },
  {
    row: 105,
    what: 'a nonce that has expired',
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
    what: 'a nonce that was used',
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
    what: 'the nonce of another tenant',
    run: async (world) => {
      const { wallet, token } = await world.token();
      return wallet.request(token, 'card', { nonce: await world.wallet('plain').nonce() });
    },
    expected: INVALID_NONCE,
  },
  {
    row: 106,
    what: 'a broken signature and an invented nonce',
    run: proofs((wallet) => ({ jwt: [keyProof(newKey(), wallet.issuer, 'invented').replace(/.{4}$/, 'AAAA')] })),
    expected: INVALID_PROOF,
  },
  { row: 107, what: 'a proof of an hour ago', run: bent({ payload: { iat: now() - 3600 } }), expected: INVALID_PROOF },
  {
    row: 108,
    what: 'an iss that is not a string in the proof of an anonymous wallet',
    run: bent({ payload: { iss: ['wallet'] } }),
    expected: INVALID_PROOF,
  },
  {
    row: 108,
    what: 'iss of another client',
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
    what: 'one key in two proofs',
    run: proofs((wallet, nonce) => {
      const key = newKey();
      return { jwt: [keyProof(key, wallet.issuer, nonce), keyProof(key, wallet.issuer, nonce)] };
    }),
    expected: INVALID_PROOF,
  },
  { row: 110, what: 'no attestation of the key', run: proofs(plainJwt, 'attested'), expected: INVALID_PROOF },
  {
    row: 111,
    what: 'an attestation of keys with a broken signature',
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
    what: 'an attestation of a provider on no list',
    run: attested(({ provider }) => ({ signer: provider.operator })),
    expected: INVALID_PROOF,
  },
  { row: 111, what: 'an attestation of keys that has expired', run: attested({ payload: { exp: now() - 70 } }), expected: INVALID_PROOF },
  { row: 111, what: 'an attestation of keys without exp', run: attested({ payload: { exp: undefined } }), expected: INVALID_PROOF },
  { row: 111, what: 'an attestation of no keys', run: attested({ payload: { attested_keys: [] } }), expected: INVALID_PROOF },
  { row: 112, what: 'a key that the attestation does not list', run: attested({}, { listed: false }), expected: INVALID_PROOF },
  {
    row: 113,
    what: 'keys that are kept less safely',
    run: attested({ payload: { key_storage: ['iso_18045_basic'] } }),
    expected: INVALID_PROOF,
  },
  {
    row: 113,
    what: 'an attestation that does not say how users authenticate',
    run: attested({ payload: { user_authentication: undefined } }),
    expected: INVALID_PROOF,
  },
  {
    row: 114,
    what: 'two attestations as proofs',
    run: attestationProof(({ provider }, nonce) => [
      provider.keyAttestation([newKey()], { nonce }),
      provider.keyAttestation([newKey()], { nonce }),
    ]),
    expected: INVALID_PROOF,
  },
  {
    row: 115,
    what: 'an attestation as proof with a stale nonce',
    run: attestationProof(({ provider }) => [provider.keyAttestation([newKey()], { nonce: 'stale' })]),
    expected: INVALID_NONCE,
  },
  {
    row: 116,
    what: 'no response encryption where it is required',
    run: async (world) => {
      const { wallet, token } = await strictToken(world);
      const plaintext = { credential_configuration_id: 'card', proofs: plainJwt(wallet, await wallet.nonce()) };
      return strictRequest(wallet, token, await encrypted(world, wallet, plaintext), 'application/jwt');
    },
    expected: INVALID_ENCRYPTION,
  },
  { row: 117, what: 'an enc that is not listed', run: sealed({ jwk: RECIPIENT, enc: 'A192GCM' }), expected: INVALID_ENCRYPTION },
  { row: 117, what: 'a JWK without alg', run: sealed({ jwk: newKey().jwk, enc: 'A256GCM' }), expected: INVALID_ENCRYPTION },
  { row: 117, what: 'a private JWK', run: sealed({ jwk: { ...RECIPIENT, d: 'secret' }, enc: 'A256GCM' }), expected: INVALID_ENCRYPTION },
  { row: 117, what: 'an unknown zip', run: sealed({ jwk: RECIPIENT, enc: 'A256GCM', zip: 'GZ' }), expected: INVALID_ENCRYPTION },
  {
    row: 118,
    what: 'response encryption inside a plain request',
    run: body((wallet, nonce) => ({
      credential_configuration_id: 'card',
      proofs: plainJwt(wallet, nonce),
      credential_response_encryption: { jwk: RECIPIENT, enc: 'A256GCM' },
    })),
    expected: INVALID_ENCRYPTION,
  },
  {
    row: 119,
    what: 'a plain request where encryption is required',
    run: async (world) => {
      const { wallet, token } = await strictToken(world);
      return strictRequest(wallet, token, '{}', 'application/json');
    },
    expected: INVALID_ENCRYPTION,
  },
  {
    row: 120,
    what: 'a JWE for an unknown key',
    run: async (world) => {
      const { wallet, token } = await world.token();
      const jwe = await encrypted(world, wallet, {}, { kid: 'unknown' });
      const headers = { ...wallet.authorization(token), 'Content-Type': 'application/jwt' };
      return wallet.request(token, 'card', { text: jwe, headers });
    },
    expected: INVALID_ENCRYPTION,
  },
  {
    row: 121,
    what: 'an error in the clear although an encrypted response was asked for',
    run: sealed({ jwk: RECIPIENT, enc: 'A256GCM' }, { proofs: { jwt: ['garbage'] } }),
    expected: { status: 400, error: 'invalid_proof', headers: { 'content-type': /^application\/json$/ } },
  },
  {
    row: 122,
    what: 'a backend that refuses',
    run: async (world) => {
      world.backend.on('/claims', { json: {} });
      const { wallet, token } = await world.token(['hooked']);
      return wallet.request(token, 'hooked');
    },
    expected: refused('credential_request_denied'),
  },
  {
    row: 122,
    what: 'a session that was revoked',
    run: async (world) => {
      const { wallet, token, session } = await world.token();
      await wallet.request(token, 'card');
      await world.admin('open', 'POST', '/session/revoke', { sessionId: session, status: 1 });
      return wallet.request(token, 'card');
    },
    expected: refused('credential_request_denied'),
  },
  {
    // One attempt, and then the session has failed: the contract's rule stands above the digest's 503.
    row: 123,
    what: 'a backend that cannot be reached',
    run: async (world) => {
      world.backend.on('/claims', (response) => response.destroy());
      const { wallet, token } = await world.token(['hooked']);
      return wallet.request(token, 'hooked');
    },
    expected: refused('credential_request_denied'),
  },
];

async function strictToken(world: World): Promise<{ wallet: RawWallet; token: string }> {
  const wallet = world.wallet('strict');
  return { wallet, token: await strictTokens(world, wallet) };
}

async function strictRequest(wallet: RawWallet, token: string, content: string, type: string): Promise<Answer> {
  const probe = await wallet.request(token, 'card', { body: {} });
  const nonce = probe.headers.get('dpop-nonce') ?? '';
  const headers = { ...wallet.authorization(token, { payload: { nonce } }), 'Content-Type': type };
  return wallet.request(token, 'card', { text: content, headers });
}
