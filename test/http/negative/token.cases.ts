import { CLIENT_ID, dpopProof, newKey, PRE_AUTHORIZED, type RawWallet } from '../../support/raw-wallet.ts';
import { accepted, attestedHeaders, type Case, rejected, type World } from './world.ts';

const scope = { scope: 'scope-card' };

async function code(world: World): Promise<{ wallet: RawWallet; code: string }> {
  const wallet = world.wallet();
  const { request_uri } = (await wallet.par(scope)).body;
  return { wallet, code: await wallet.authorize(request_uri) };
}

async function preAuthorized(world: World, overrides: object = {}) {
  const wallet = world.wallet();
  const { uri } = await world.offer('open', ['card', 'pass'], overrides);
  return { wallet, code: await wallet.code(uri) };
}

const withCode = (form: Record<string, string>, headers?: (wallet: RawWallet) => Record<string, string>) => async (world: World) => {
  const redemption = await code(world);
  return redemption.wallet.redeemCode(redemption.code, form, headers?.(redemption.wallet));
};
const withOffer = (overrides: object, form: Record<string, string>) => async (world: World) => {
  const redemption = await preAuthorized(world, overrides);
  return redemption.wallet.redeem(redemption.code, form);
};
const details = (...ids: string[]) => JSON.stringify(ids.map((id) => ({ type: 'openid_credential', credential_configuration_id: id })));
const proofOf = (wallet: RawWallet, key = wallet.dpopKey) => ({ DPoP: dpopProof(key, `${wallet.issuer}/token`) });
const TX = { tx_code: '402917' };

/** The token endpoint. */
export const tokenCases: readonly Case[] = [
  {
    row: 35,
    title: 'a JSON body',
    run: ({ service }) => service.call('POST', '/open/token', { json: { grant_type: PRE_AUTHORIZED } }),
    expected: rejected('invalid_request'),
  },
  {
    row: 35,
    title: 'no grant_type',
    run: ({ service }) => service.call('POST', '/open/token', { form: { code: 'x' } }),
    expected: rejected('invalid_request'),
  },
  {
    row: 36,
    title: 'the password grant',
    run: ({ service }) => service.call('POST', '/open/token', { form: { grant_type: 'password' } }),
    expected: rejected('unsupported_grant_type'),
  },
  { row: 38, title: 'an unknown code', run: (world) => world.wallet().redeemCode('unknown'), expected: rejected('invalid_grant') },
  {
    row: 38,
    title: 'the code of another client',
    run: withCode({ client_id: 'https://other.example' }),
    expected: rejected('invalid_grant'),
  },
  {
    row: 38,
    title: 'the code of another tenant',
    run: async (world) => world.wallet('plain').redeemCode((await code(world)).code),
    expected: rejected('invalid_grant'),
  },
  {
    row: 39,
    title: 'a code of 61 seconds',
    run: async (world) => {
      const redemption = await code(world);
      return world.later(61, () => redemption.wallet.redeemCode(redemption.code));
    },
    expected: rejected('invalid_grant'),
  },
  {
    row: 40,
    title: 'a code that was used',
    run: async (world) => {
      const redemption = await code(world);
      await redemption.wallet.redeemCode(redemption.code);
      return redemption.wallet.redeemCode(redemption.code);
    },
    expected: rejected('invalid_grant'),
  },
  {
    row: 40,
    title: 'the access token of a code that came back',
    run: async (world) => {
      const redemption = await code(world);
      const { access_token } = (await redemption.wallet.redeemCode(redemption.code)).body;
      await redemption.wallet.redeemCode(redemption.code);
      return redemption.wallet.request(access_token, 'card');
    },
    expected: rejected('invalid_token', 401),
  },
  {
    row: 41,
    title: 'the second of two that redeem one code at once',
    run: async (world) => {
      const redemption = await code(world);
      const responses = await Promise.all([redemption.wallet.redeemCode(redemption.code), redemption.wallet.redeemCode(redemption.code)]);
      const [first, second] = responses.sort((left, right) => left.status - right.status);
      if (first?.status !== 200 || second === undefined) throw new Error('no request got a token');
      return second;
    },
    expected: rejected('invalid_grant'),
  },
  {
    row: 42,
    title: 'another redirect_uri',
    run: withCode({ redirect_uri: 'https://wallet.example/other' }),
    expected: rejected('invalid_grant'),
  },
  { row: 42, title: 'no redirect_uri', run: withCode({ redirect_uri: '' }), expected: rejected('invalid_grant') },
  { row: 43, title: 'a wrong code_verifier', run: withCode({ code_verifier: 'x'.repeat(43) }), expected: rejected('invalid_grant') },
  { row: 43, title: 'no code_verifier', run: withCode({ code_verifier: '' }), expected: rejected('invalid_grant') },
  { row: 44, title: 'no DPoP proof', run: withCode({}, () => ({})), expected: rejected('invalid_dpop_proof') },
  {
    row: 45,
    title: 'another DPoP key than the request was pushed with',
    run: async (world) => {
      const wallet = world.wallet();
      const pushResponse = await wallet.par(scope, { DPoP: dpopProof(wallet.dpopKey, `${wallet.issuer}/par`) });
      const redemption = await wallet.authorize(pushResponse.body.request_uri);
      return wallet.redeemCode(redemption, {}, proofOf(wallet, newKey()));
    },
    expected: rejected('invalid_grant'),
  },
  {
    row: 46,
    title: 'an unknown pre-authorized code',
    run: (world) => world.wallet().redeem('unknown'),
    expected: rejected('invalid_grant'),
  },
  {
    row: 46,
    title: 'a pre-authorized code that has expired',
    run: async (world) => {
      const redemption = await preAuthorized(world, { expiresIn: 60 });
      return world.later(61, () => redemption.wallet.redeem(redemption.code));
    },
    expected: rejected('invalid_grant'),
  },
  {
    row: 46,
    title: 'a pre-authorized code that was used',
    run: async (world) => {
      const redemption = await preAuthorized(world);
      await redemption.wallet.redeem(redemption.code);
      return world.wallet().redeem(redemption.code);
    },
    expected: rejected('invalid_grant'),
  },
  { row: 47, title: 'no tx_code where one is expected', run: withOffer(TX, {}), expected: rejected('invalid_request') },
  { row: 48, title: 'a tx_code where none is expected', run: withOffer({}, TX), expected: rejected('invalid_request') },
  { row: 49, title: 'a wrong tx_code', run: withOffer(TX, { tx_code: '000000' }), expected: rejected('invalid_grant') },
  {
    row: 49,
    title: 'the right tx_code after a wrong one',
    run: async (world) => {
      const redemption = await preAuthorized(world, TX);
      await redemption.wallet.redeem(redemption.code, { tx_code: '000000' });
      return redemption.wallet.redeem(redemption.code, TX);
    },
    expected: accepted(),
  },
  {
    row: 50,
    title: 'the right tx_code after five wrong ones',
    run: async (world) => {
      const redemption = await preAuthorized(world, TX);
      for (let attempts = 0; attempts < 5; attempts++) await redemption.wallet.redeem(redemption.code, { tx_code: '000000' });
      return redemption.wallet.redeem(redemption.code, TX);
    },
    expected: rejected('invalid_grant'),
  },
  { row: 51, title: 'a tx_code with the code grant', run: withCode(TX), expected: rejected('invalid_request') },
  {
    row: 52,
    title: 'an anonymous wallet where attestations are demanded',
    run: async (world) => {
      const { uri } = await world.offer('strict', ['card']);
      const wallet = world.wallet('strict');
      return wallet.redeem(await wallet.code(uri));
    },
    expected: rejected('invalid_client', 401),
  },
  { row: 53, title: 'less than was granted', run: withOffer({}, { authorization_details: details('card') }), expected: accepted() },
  {
    row: 54,
    title: 'more than was granted',
    run: withOffer({}, { authorization_details: details('card', 'slow') }),
    expected: rejected('invalid_authorization_details'),
  },
  {
    row: 55,
    title: 'a refresh token in another wallet instance',
    run: async (world) => {
      const { wallet, refreshToken } = await attestedTokens(world);
      const headers = await attestedHeaders(world, wallet, 'token', { instance: newKey() });
      return wallet.refresh(refreshToken, {}, headers);
    },
    expected: rejected('invalid_grant'),
  },
  {
    row: 56,
    title: 'a refresh token of an anonymous wallet with another DPoP key',
    run: async (world) => {
      const redemption = await preAuthorized(world);
      const { refresh_token } = (await redemption.wallet.redeem(redemption.code)).body;
      return redemption.wallet.refresh(refresh_token, {}, proofOf(redemption.wallet, newKey()));
    },
    expected: rejected('invalid_grant'),
  },
  {
    row: 57,
    title: 'a refresh token of an attested wallet with another DPoP key',
    run: async (world) => {
      const { wallet, refreshToken, instance } = await attestedTokens(world);
      const headers = await attestedHeaders(world, wallet, 'token', { instance });
      return wallet.refresh(refreshToken, {}, { ...headers, ...proofOf(wallet, newKey()) });
    },
    expected: accepted(),
  },
  {
    row: 58,
    title: 'a refresh token for a wider scope',
    run: async (world) => {
      const redemption = await code(world);
      const { refresh_token } = (await redemption.wallet.redeemCode(redemption.code)).body;
      const form = { client_id: CLIENT_ID, scope: 'scope-card scope-pass' };
      return redemption.wallet.refresh(refresh_token, form);
    },
    expected: rejected('invalid_scope'),
  },
  { row: 59, title: 'a parameter that is unknown', run: withCode({ unknown: 'parameter' }), expected: accepted() },
];

/** Tokens of an attested wallet at the open tenant, which requires no nonces. */
async function attestedTokens(world: World) {
  const wallet = world.wallet();
  const instance = newKey();
  const pushResponse = await wallet.par(scope, await attestedHeaders(world, wallet, 'par', { instance }));
  const redemption = await wallet.authorize(pushResponse.body.request_uri);
  const answer = await wallet.redeemCode(redemption, {}, await attestedHeaders(world, wallet, 'token', { instance }));
  if (answer.status !== 200) throw new Error(`attested token: ${answer.text}`);
  return { wallet, instance, refreshToken: String(answer.body.refresh_token) };
}
