import { CLIENT_ID, dpopProof, newKey, PRE_AUTHORIZED, type RawWallet } from '../../support/raw-wallet.ts';
import { accepted, attestedHeaders, type Case, refused, type World } from './world.ts';

const scope = { scope: 'scope-card' };

async function code(world: World): Promise<{ wallet: RawWallet; code: string }> {
  const wallet = world.wallet();
  const { request_uri } = (await wallet.par(scope)).body;
  return { wallet, code: await wallet.authorize(request_uri) };
}

async function preAuthorized(world: World, more: object = {}) {
  const wallet = world.wallet();
  const { uri } = await world.offer('open', ['card', 'pass'], more);
  return { wallet, code: await wallet.code(uri) };
}

const withCode = (form: Record<string, string>, headers?: (wallet: RawWallet) => Record<string, string>) => async (world: World) => {
  const got = await code(world);
  return got.wallet.redeemCode(got.code, form, headers?.(got.wallet));
};
const withOffer = (more: object, form: Record<string, string>) => async (world: World) => {
  const got = await preAuthorized(world, more);
  return got.wallet.redeem(got.code, form);
};
const details = (...ids: string[]) => JSON.stringify(ids.map((id) => ({ type: 'openid_credential', credential_configuration_id: id })));
const proofOf = (wallet: RawWallet, key = wallet.dpopKey) => ({ DPoP: dpopProof(key, `${wallet.issuer}/token`) });
const TX = { tx_code: '402917' };

/** The token endpoint. */
export const tokenCases: readonly Case[] = [
  {
    row: 35,
    what: 'a JSON body',
    run: ({ service }) => service.call('POST', '/open/token', { json: { grant_type: PRE_AUTHORIZED } }),
    expected: refused('invalid_request'),
  },
  {
    row: 35,
    what: 'no grant_type',
    run: ({ service }) => service.call('POST', '/open/token', { form: { code: 'x' } }),
    expected: refused('invalid_request'),
  },
  {
    row: 36,
    what: 'the password grant',
    run: ({ service }) => service.call('POST', '/open/token', { form: { grant_type: 'password' } }),
    expected: refused('unsupported_grant_type'),
  },
  { row: 38, what: 'an unknown code', run: (world) => world.wallet().redeemCode('unknown'), expected: refused('invalid_grant') },
  {
    row: 38,
    what: 'the code of another client',
    run: withCode({ client_id: 'https://other.example' }),
    expected: refused('invalid_grant'),
  },
  {
    row: 38,
    what: 'the code of another tenant',
    run: async (world) => world.wallet('plain').redeemCode((await code(world)).code),
    expected: refused('invalid_grant'),
  },
  {
    row: 39,
    what: 'a code of 61 seconds',
    run: async (world) => {
      const got = await code(world);
      return world.later(61, () => got.wallet.redeemCode(got.code));
    },
    expected: refused('invalid_grant'),
  },
  {
    row: 40,
    what: 'a code that was used',
    run: async (world) => {
      const got = await code(world);
      await got.wallet.redeemCode(got.code);
      return got.wallet.redeemCode(got.code);
    },
    expected: refused('invalid_grant'),
  },
  {
    row: 40,
    what: 'the access token of a code that came back',
    run: async (world) => {
      const got = await code(world);
      const { access_token } = (await got.wallet.redeemCode(got.code)).body;
      await got.wallet.redeemCode(got.code);
      return got.wallet.request(access_token, 'card');
    },
    expected: refused('invalid_token', 401),
  },
  {
    row: 41,
    what: 'the second of two that redeem one code at once',
    run: async (world) => {
      const got = await code(world);
      const answers = await Promise.all([got.wallet.redeemCode(got.code), got.wallet.redeemCode(got.code)]);
      const [first, second] = answers.sort((one, other) => one.status - other.status);
      if (first?.status !== 200 || second === undefined) throw new Error('nobody got a token');
      return second;
    },
    expected: refused('invalid_grant'),
  },
  {
    row: 42,
    what: 'another redirect_uri',
    run: withCode({ redirect_uri: 'https://wallet.example/other' }),
    expected: refused('invalid_grant'),
  },
  { row: 42, what: 'no redirect_uri', run: withCode({ redirect_uri: '' }), expected: refused('invalid_grant') },
  { row: 43, what: 'a wrong code_verifier', run: withCode({ code_verifier: 'x'.repeat(43) }), expected: refused('invalid_grant') },
  { row: 43, what: 'no code_verifier', run: withCode({ code_verifier: '' }), expected: refused('invalid_grant') },
  { row: 44, what: 'no DPoP proof', run: withCode({}, () => ({})), expected: refused('invalid_dpop_proof') },
  {
    row: 45,
    what: 'another DPoP key than the request was pushed with',
    run: async (world) => {
      const wallet = world.wallet();
      const pushed = await wallet.par(scope, { DPoP: dpopProof(wallet.dpopKey, `${wallet.issuer}/par`) });
      const got = await wallet.authorize(pushed.body.request_uri);
      return wallet.redeemCode(got, {}, proofOf(wallet, newKey()));
    },
    expected: refused('invalid_grant'),
  },
  { row: 46, what: 'an unknown pre-authorized code', run: (world) => world.wallet().redeem('unknown'), expected: refused('invalid_grant') },
  {
    row: 46,
    what: 'a pre-authorized code that has expired',
    run: async (world) => {
      const got = await preAuthorized(world, { expiresIn: 60 });
      return world.later(61, () => got.wallet.redeem(got.code));
    },
    expected: refused('invalid_grant'),
  },
  {
    row: 46,
    what: 'a pre-authorized code that was used',
    run: async (world) => {
      const got = await preAuthorized(world);
      await got.wallet.redeem(got.code);
      return world.wallet().redeem(got.code);
    },
    expected: refused('invalid_grant'),
  },
  { row: 47, what: 'no tx_code where one is expected', run: withOffer(TX, {}), expected: refused('invalid_request') },
  { row: 48, what: 'a tx_code where none is expected', run: withOffer({}, TX), expected: refused('invalid_request') },
  { row: 49, what: 'a wrong tx_code', run: withOffer(TX, { tx_code: '000000' }), expected: refused('invalid_grant') },
  {
    row: 49,
    what: 'the right tx_code after a wrong one',
    run: async (world) => {
      const got = await preAuthorized(world, TX);
      await got.wallet.redeem(got.code, { tx_code: '000000' });
      return got.wallet.redeem(got.code, TX);
    },
    expected: accepted(),
  },
  {
    row: 50,
    what: 'the right tx_code after five wrong ones',
    run: async (world) => {
      const got = await preAuthorized(world, TX);
      for (let tries = 0; tries < 5; tries++) await got.wallet.redeem(got.code, { tx_code: '000000' });
      return got.wallet.redeem(got.code, TX);
    },
    expected: refused('invalid_grant'),
  },
  { row: 51, what: 'a tx_code with the code grant', run: withCode(TX), expected: refused('invalid_request') },
  {
    row: 52,
    what: 'an anonymous wallet where attestations are demanded',
    run: async (world) => {
      const { uri } = await world.offer('strict', ['card']);
      const wallet = world.wallet('strict');
      return wallet.redeem(await wallet.code(uri));
    },
    expected: refused('invalid_client', 401),
  },
  { row: 53, what: 'less than was granted', run: withOffer({}, { authorization_details: details('card') }), expected: accepted() },
  {
    row: 54,
    what: 'more than was granted',
    run: withOffer({}, { authorization_details: details('card', 'slow') }),
    expected: refused('invalid_authorization_details'),
  },
  {
    row: 55,
    what: 'a refresh token in another wallet instance',
    run: async (world) => {
      const { wallet, refreshToken } = await attestedTokens(world);
      const headers = await attestedHeaders(world, wallet, 'token', { instance: newKey() });
      return wallet.refresh(refreshToken, {}, headers);
    },
    expected: refused('invalid_grant'),
  },
  {
    row: 56,
    what: 'a refresh token of an anonymous wallet with another DPoP key',
    run: async (world) => {
      const got = await preAuthorized(world);
      const { refresh_token } = (await got.wallet.redeem(got.code)).body;
      return got.wallet.refresh(refresh_token, {}, proofOf(got.wallet, newKey()));
    },
    expected: refused('invalid_grant'),
  },
  {
    row: 57,
    what: 'a refresh token of an attested wallet with another DPoP key',
    run: async (world) => {
      const { wallet, refreshToken, instance } = await attestedTokens(world);
      const headers = await attestedHeaders(world, wallet, 'token', { instance });
      return wallet.refresh(refreshToken, {}, { ...headers, ...proofOf(wallet, newKey()) });
    },
    expected: accepted(),
  },
  {
    row: 58,
    what: 'a refresh token for a wider scope',
    run: async (world) => {
      const got = await code(world);
      const { refresh_token } = (await got.wallet.redeemCode(got.code)).body;
      const form = { client_id: CLIENT_ID, scope: 'scope-card scope-pass' };
      return got.wallet.refresh(refresh_token, form);
    },
    expected: refused('invalid_scope'),
  },
  { row: 59, what: 'a parameter that is unknown', run: withCode({ unknown: 'parameter' }), expected: accepted() },
];

/** Tokens of an attested wallet at the open tenant, which demands no nonces. */
async function attestedTokens(world: World) {
  const wallet = world.wallet();
  const instance = newKey();
  const pushed = await wallet.par(scope, await attestedHeaders(world, wallet, 'par', { instance }));
  const got = await wallet.authorize(pushed.body.request_uri);
  const answer = await wallet.redeemCode(got, {}, await attestedHeaders(world, wallet, 'token', { instance }));
  if (answer.status !== 200) throw new Error(`attested token: ${answer.text}`);
  return { wallet, instance, refreshToken: String(answer.body.refresh_token) };
}
