import { dpopProof, newKey, now, type Overrides, type RawWallet } from '../../support/raw-wallet.ts';
import type { Answer } from '../../support/test-service.ts';
import { accepted, type Case, type Expected, type World } from './world.ts';

const denied = (error: string): Expected => ({
  status: 401,
  error,
  headers: { 'www-authenticate': new RegExp(`^DPoP .*error="${error}"`) },
});
const BAD_PROOF = denied('invalid_dpop_proof');

type Options = { key?: ReturnType<typeof newKey>; scheme?: string } & Overrides;

/** A credential request with a changed proof. */
const changedProof =
  (options: Options | ((wallet: RawWallet, token: string) => Options)) =>
  async (world: World): Promise<Answer> => {
    const { wallet, token } = await world.token();
    const headers = typeof options === 'function' ? options(wallet, token) : options;
    return wallet.request(token, 'card', { headers: wallet.authorization(token, headers) });
  };
const withHeaders =
  (headers: (wallet: RawWallet, token: string) => Record<string, string>) =>
  async (world: World): Promise<Answer> => {
    const { wallet, token } = await world.token();
    return wallet.request(token, 'card', { headers: headers(wallet, token) });
  };
const unsigned = (jwt: string, header: object) => {
  const [, payload] = jwt.split('.');
  return `${Buffer.from(JSON.stringify(header)).toString('base64url')}.${payload}.`;
};

/** Access tokens and DPoP proofs at the credential endpoint, and the nonce endpoint. */
export const resourceCases: readonly Case[] = [
  {
    row: 74,
    title: 'no Authorization',
    run: withHeaders(() => ({})),
    expected: { status: 401, headers: { 'www-authenticate': /^DPoP (?!.*error=)/ } },
  },
  { row: 75, title: 'a bound token as Bearer', run: changedProof({ scheme: 'Bearer' }), expected: denied('invalid_token') },
  { row: 76, title: 'no proof', run: withHeaders((_wallet, token) => ({ Authorization: `DPoP ${token}` })), expected: BAD_PROOF },
  {
    row: 76,
    title: 'two proofs',
    run: withHeaders((wallet, token) => {
      const { Authorization = '', DPoP } = wallet.authorization(token);
      return { Authorization, DPoP: `${DPoP}, ${DPoP}` };
    }),
    expected: BAD_PROOF,
  },
  { row: 77, title: 'a proof of the type jwt', run: changedProof({ header: { typ: 'jwt' } }), expected: BAD_PROOF },
  {
    row: 77,
    title: 'a proof without a signature',
    run: withHeaders((wallet, token) => {
      const { Authorization = '', DPoP = '' } = wallet.authorization(token);
      return { Authorization, DPoP: unsigned(DPoP, { typ: 'dpop+jwt', alg: 'none', jwk: wallet.dpopKey.jwk }) };
    }),
    expected: BAD_PROOF,
  },
  { row: 77, title: 'a proof without its key', run: changedProof({ header: { jwk: undefined } }), expected: BAD_PROOF },
  { row: 77, title: 'a proof by HS256', run: changedProof({ header: { alg: 'HS256' } }), expected: BAD_PROOF },
  {
    row: 77,
    title: 'a proof with a private key',
    run: changedProof((wallet) => ({ header: { jwk: { ...wallet.dpopKey.jwk, d: 'secret' } } })),
    expected: BAD_PROOF,
  },
  ...['jti', 'htm', 'htu', 'iat', 'ath'].map(
    (property): Case => ({
      row: 78,
      title: `a proof without ${property}`,
      run: changedProof({ payload: { [property]: undefined } }),
      expected: BAD_PROOF,
    }),
  ),
  { row: 79, title: 'a proof for GET', run: changedProof({ payload: { htm: 'GET' } }), expected: BAD_PROOF },
  {
    row: 79,
    title: 'a proof for another path',
    run: changedProof((wallet) => ({ payload: { htu: `${wallet.issuer}/nonce` } })),
    expected: BAD_PROOF,
  },
  {
    row: 79,
    title: 'a proof for the host behind the proxy',
    run: changedProof((wallet) => ({ payload: { htu: `http://10.0.0.1:3000${new URL(wallet.issuer).pathname}/credential` } })),
    expected: BAD_PROOF,
  },
  {
    row: 80,
    title: 'a proof with the host in capitals and a query',
    run: changedProof((wallet) => ({ payload: { htu: `${wallet.issuer.replace('localhost', 'LOCALHOST')}/credential?query=1#part` } })),
    expected: accepted(),
  },
  { row: 81, title: 'a proof of an hour ago', run: changedProof(() => ({ payload: { iat: now() - 3600 } })), expected: BAD_PROOF },
  { row: 81, title: 'a proof of 61 seconds ahead', run: changedProof(() => ({ payload: { iat: now() + 62 } })), expected: BAD_PROOF },
  { row: 82, title: 'a proof of 8 seconds ahead', run: changedProof(() => ({ payload: { iat: now() + 8 } })), expected: accepted() },
  { row: 82, title: 'a proof with a claim that is unknown', run: changedProof({ payload: { more: 1 } }), expected: accepted() },
  {
    row: 83,
    title: 'a proof that was used',
    run: async (world) => {
      const { wallet, token } = await world.token();
      const headers = wallet.authorization(token);
      await wallet.request(token, 'card', { headers });
      return wallet.request(token, 'card', { headers });
    },
    expected: BAD_PROOF,
  },
  { row: 84, title: 'a proof for another token', run: changedProof({ payload: { ath: 'x'.repeat(43) } }), expected: BAD_PROOF },
  { row: 85, title: 'a proof by another key', run: changedProof(() => ({ key: newKey() })), expected: denied('invalid_token') },
  {
    row: 86,
    title: 'a proof with a stale nonce',
    run: changedProof({ payload: { nonce: 'stale' } }),
    expected: { status: 401, error: 'use_dpop_nonce', headers: { 'dpop-nonce': /./, 'www-authenticate': /error="use_dpop_nonce"/ } },
  },
  {
    row: 87,
    title: 'the token in the query',
    run: async (world) => {
      const { wallet, token } = await world.token();
      const headers = { DPoP: dpopProof(wallet.dpopKey, `${wallet.issuer}/credential`, { token }) };
      return world.service.call('POST', `/open/credential?access_token=${token}`, { headers, json: {} });
    },
    expected: { status: 401, headers: { 'www-authenticate': /^DPoP (?!.*error=)/ } },
  },
  {
    row: 88,
    title: 'a token that has expired',
    run: async (world) => {
      const { wallet, token } = await world.token();
      return world.later(1801, () =>
        wallet.request(token, 'card', { body: {}, headers: wallet.authorization(token, { payload: { iat: now() + 1801 } }) }),
      );
    },
    expected: denied('invalid_token'),
  },
  {
    row: 88,
    title: 'the token of another tenant',
    run: async (world) => {
      const { token, wallet } = await world.token();
      const otherWallet = world.wallet('plain');
      const headers = otherWallet.authorization(token, { key: wallet.dpopKey });
      return otherWallet.request(token, 'card', { headers });
    },
    expected: denied('invalid_token'),
  },
  {
    row: 89,
    title: 'GET to the nonce endpoint',
    run: ({ service }) => service.call('GET', '/open/nonce'),
    expected: { status: 405, headers: { allow: /^POST$/ } },
  },
  {
    row: 90,
    title: 'a nonce request with a body',
    run: ({ service }) => service.call('POST', '/open/nonce', { text: '{garbage', headers: { Authorization: 'Bearer garbage' } }),
    expected: { status: 200, headers: { 'cache-control': /no-store/ } },
  },
];
