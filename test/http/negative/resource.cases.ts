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

/** A credential request with a proof that is bent. */
const bent =
  (options: Options | ((wallet: RawWallet, token: string) => Options)) =>
  async (world: World): Promise<Answer> => {
    const { wallet, token } = await world.token();
    const chosen = typeof options === 'function' ? options(wallet, token) : options;
    return wallet.request(token, 'card', { headers: wallet.authorization(token, chosen) });
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
    what: 'no Authorization',
    run: withHeaders(() => ({})),
    expected: { status: 401, headers: { 'www-authenticate': /^DPoP (?!.*error=)/ } },
  },
  { row: 75, what: 'a bound token as Bearer', run: bent({ scheme: 'Bearer' }), expected: denied('invalid_token') },
  { row: 76, what: 'no proof', run: withHeaders((_wallet, token) => ({ Authorization: `DPoP ${token}` })), expected: BAD_PROOF },
  {
    row: 76,
    what: 'two proofs',
    run: withHeaders((wallet, token) => {
      const { Authorization = '', DPoP } = wallet.authorization(token);
      return { Authorization, DPoP: `${DPoP}, ${DPoP}` };
    }),
    expected: BAD_PROOF,
  },
  { row: 77, what: 'a proof of the type jwt', run: bent({ header: { typ: 'jwt' } }), expected: BAD_PROOF },
  {
    row: 77,
    what: 'a proof without a signature',
    run: withHeaders((wallet, token) => {
      const { Authorization = '', DPoP = '' } = wallet.authorization(token);
      return { Authorization, DPoP: unsigned(DPoP, { typ: 'dpop+jwt', alg: 'none', jwk: wallet.dpopKey.jwk }) };
    }),
    expected: BAD_PROOF,
  },
  { row: 77, what: 'a proof without its key', run: bent({ header: { jwk: undefined } }), expected: BAD_PROOF },
  { row: 77, what: 'a proof by HS256', run: bent({ header: { alg: 'HS256' } }), expected: BAD_PROOF },
  {
    row: 77,
    what: 'a proof with a private key',
    run: bent((wallet) => ({ header: { jwk: { ...wallet.dpopKey.jwk, d: 'secret' } } })),
    expected: BAD_PROOF,
  },
  ...['jti', 'htm', 'htu', 'iat', 'ath'].map(
    (member): Case => ({
      row: 78,
      what: `a proof without ${member}`,
      run: bent({ payload: { [member]: undefined } }),
      expected: BAD_PROOF,
    }),
  ),
  { row: 79, what: 'a proof for GET', run: bent({ payload: { htm: 'GET' } }), expected: BAD_PROOF },
  {
    row: 79,
    what: 'a proof for another path',
    run: bent((wallet) => ({ payload: { htu: `${wallet.issuer}/nonce` } })),
    expected: BAD_PROOF,
  },
  {
    row: 79,
    what: 'a proof for the host behind the proxy',
    run: bent((wallet) => ({ payload: { htu: `http://10.0.0.1:3000${new URL(wallet.issuer).pathname}/credential` } })),
    expected: BAD_PROOF,
  },
  {
    row: 80,
    what: 'a proof with the host in capitals and a query',
    run: bent((wallet) => ({ payload: { htu: `${wallet.issuer.replace('localhost', 'LOCALHOST')}/credential?query=1#part` } })),
    expected: accepted(),
  },
  { row: 81, what: 'a proof of an hour ago', run: bent(() => ({ payload: { iat: now() - 3600 } })), expected: BAD_PROOF },
  { row: 81, what: 'a proof of 61 seconds ahead', run: bent(() => ({ payload: { iat: now() + 62 } })), expected: BAD_PROOF },
  { row: 82, what: 'a proof of 8 seconds ahead', run: bent(() => ({ payload: { iat: now() + 8 } })), expected: accepted() },
  { row: 82, what: 'a proof with a claim that is unknown', run: bent({ payload: { more: 1 } }), expected: accepted() },
  {
    row: 83,
    what: 'a proof that was used',
    run: async (world) => {
      const { wallet, token } = await world.token();
      const headers = wallet.authorization(token);
      await wallet.request(token, 'card', { headers });
      return wallet.request(token, 'card', { headers });
    },
    expected: BAD_PROOF,
  },
  { row: 84, what: 'a proof for another token', run: bent({ payload: { ath: 'x'.repeat(43) } }), expected: BAD_PROOF },
  { row: 85, what: 'a proof by another key', run: bent(() => ({ key: newKey() })), expected: denied('invalid_token') },
  {
    row: 86,
    what: 'a proof with a stale nonce',
    run: bent({ payload: { nonce: 'stale' } }),
    expected: { status: 401, error: 'use_dpop_nonce', headers: { 'dpop-nonce': /./, 'www-authenticate': /error="use_dpop_nonce"/ } },
  },
  {
    row: 87,
    what: 'the token in the query',
    run: async (world) => {
      const { wallet, token } = await world.token();
      const headers = { DPoP: dpopProof(wallet.dpopKey, `${wallet.issuer}/credential`, { token }) };
      return world.service.call('POST', `/open/credential?access_token=${token}`, { headers, json: {} });
    },
    expected: { status: 401, headers: { 'www-authenticate': /^DPoP (?!.*error=)/ } },
  },
  {
    row: 88,
    what: 'a token that has expired',
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
    what: 'the token of another tenant',
    run: async (world) => {
      const { token, wallet } = await world.token();
      const other = world.wallet('plain');
      const headers = other.authorization(token, { key: wallet.dpopKey });
      return other.request(token, 'card', { headers });
    },
    expected: denied('invalid_token'),
  },
  {
    row: 89,
    what: 'GET to the nonce endpoint',
    run: ({ service }) => service.call('GET', '/open/nonce'),
    expected: { status: 405, headers: { allow: /^POST$/ } },
  },
  {
    row: 90,
    what: 'a nonce request with anything in it',
    run: ({ service }) => service.call('POST', '/open/nonce', { text: '{garbage', headers: { Authorization: 'Bearer garbage' } }),
    expected: { status: 200, headers: { 'cache-control': /no-store/ } },
  },
];
