import { AUTHORIZATION_REQUEST, CLIENT_ID, dpopProof, newKey } from '../../support/raw-wallet.ts';
import { accepted, attestedHeaders, type Case, rejected, type World } from './world.ts';

const scope = { scope: 'scope-card' };
const details = (...entries: object[]) => ({ authorization_details: JSON.stringify(entries) });
const CARD = { type: 'openid_credential', credential_configuration_id: 'card' };
const par = (form: Record<string, string>) => (world: World) => world.wallet().par(form);

/** Offers, metadata, pushed requests and the authorization endpoint. */
export const requestCases: readonly Case[] = [
  {
    row: 1,
    title: 'an offer that is unknown',
    run: ({ service }) => service.call('GET', '/open/credential-offer/unknown'),
    expected: { status: 404 },
  },
  {
    row: 1,
    title: 'an offer that has expired',
    run: async (world) => {
      const { uri } = await world.offer('open', ['card'], { expiresIn: 60 });
      const address = new URL(uri).searchParams.get('credential_offer_uri') ?? '';
      return world.later(61, () => world.service.call('GET', address));
    },
    expected: { status: 404 },
  },
  ...['/.well-known/openid-credential-issuer/open', '/open/.well-known/openid-credential-issuer'].map(
    (path): Case => ({
      row: 2,
      title: `POST to ${path}`,
      run: ({ service }) => service.call('POST', path),
      expected: { status: 405, headers: { allow: /GET/ } },
    }),
  ),
  {
    row: 3,
    title: 'metadata in a form that we do not have',
    run: ({ service }) => service.call('GET', '/open/.well-known/openid-credential-issuer', { headers: { Accept: 'application/xml' } }),
    expected: { status: 200, headers: { 'content-type': /^application\/json$/ } },
  },
  {
    row: 4,
    title: 'metadata of an unknown tenant',
    run: ({ service }) => service.call('GET', '/no-such-tenant/.well-known/openid-credential-issuer'),
    expected: { status: 404 },
  },
  ...(
    [
      [5, 'a configuration twice in an offer', { credentialConfigurationIds: ['card', 'card'] }],
      [5, 'an unknown configuration in an offer', { credentialConfigurationIds: ['nothing'] }],
      [6, 'a transaction code with the code flow', { flow: 'authorization_code', tx_code: '123456' }],
      [7, 'an authorization server that the metadata does not list', { authorization_server: 'https://x.example' }],
      [8, 'a description of 301 characters', { tx_code: '123456', tx_code_description: 'x'.repeat(301) }],
    ] as const
  ).map(
    ([row, title, overrides]): Case => ({
      row,
      title,
      run: ({ admin }) =>
        admin('open', 'POST', '/issuer/offer', {
          response_type: 'uri',
          flow: 'pre_authorized_code',
          credentialConfigurationIds: ['card'],
          ...overrides,
        }),
      expected: { status: 400 },
    }),
  ),
  {
    row: 9,
    title: 'claims that treat one array by null and by index',
    run: ({ admin }) =>
      admin('open', 'PATCH', '/issuer/credentials/card', {
        config: { format: 'dc+sd-jwt', display: [{ name: 'Card' }], claims: [{ path: ['a', null] }, { path: ['a', 0] }] },
      }),
    expected: { status: 400 },
  },
  {
    row: 10,
    title: 'GET to the endpoint of pushed requests',
    run: ({ service }) => service.call('GET', '/open/par'),
    expected: { status: 405, headers: { allow: /^POST$/ } },
  },
  { row: 11, title: 'a pushed request that is too large', run: par({ ...scope, x: 'x'.repeat(70_000) }), expected: { status: 413 } },
  {
    row: 12,
    title: 'client_id twice',
    run: ({ service }) =>
      service.call('POST', '/open/par', {
        text: 'client_id=a&client_id=b',
        headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      }),
    expected: rejected('invalid_request'),
  },
  {
    row: 13,
    title: 'no attestation where one is demanded',
    run: (world) => world.wallet('strict').par(scope),
    expected: rejected('invalid_client', 401),
  },
  {
    row: 14,
    title: 'a client_id that is not the subject of the attestation',
    run: async (world) => {
      const wallet = world.wallet('strict');
      const headers = await attestedHeaders(world, wallet, 'par', { attestation: { clientId: 'https://x.example' } });
      return wallet.par(scope, headers);
    },
    expected: rejected('invalid_client_attestation'),
  },
  {
    row: 15,
    title: 'request_uri in a pushed request',
    run: par({ ...scope, request_uri: 'urn:x' }),
    expected: rejected('invalid_request'),
  },
  { row: 16, title: 'no response_type', run: par({ ...scope, response_type: '' }), expected: rejected('invalid_request') },
  ...['token', 'code id_token'].map(
    (response_type): Case => ({
      row: 16,
      title: `the response_type ${response_type}`,
      run: par({ ...scope, response_type }),
      expected: rejected('unsupported_response_type'),
    }),
  ),
  ...['', 'https://wallet.example/cb#here', 'http://evil.example/cb', 'javascript:alert(1)', '/relative'].map(
    (redirect_uri): Case => ({
      row: 17,
      title: `the redirect_uri '${redirect_uri}'`,
      run: par({ ...scope, redirect_uri }),
      expected: rejected('invalid_request'),
    }),
  ),
  ...(
    [
      ['no code_challenge', { code_challenge: '' }],
      ['the method plain', { code_challenge_method: 'plain' }],
      ['no method', { code_challenge_method: '' }],
      ['a challenge of 42 characters', { code_challenge: AUTHORIZATION_REQUEST.code_challenge.slice(1) }],
    ] as const
  ).map(([title, form]): Case => ({ row: 18, title, run: par({ ...scope, ...form }), expected: rejected('invalid_request') })),
  { row: 19, title: 'a known scope beside an unknown one', run: par({ scope: 'scope-card unknown.x' }), expected: accepted(201) },
  { row: 20, title: 'unknown scopes only', run: par({ scope: 'unknown.x' }), expected: rejected('invalid_scope') },
  ...['{', '{}', '[]', '"x"', JSON.stringify([{ ...CARD, type: 'foo' }])].map(
    (authorization_details): Case => ({
      row: 21,
      title: `the authorization_details ${authorization_details}`,
      run: par({ authorization_details }),
      expected: rejected('invalid_authorization_details'),
    }),
  ),
  {
    row: 22,
    title: 'details of an unknown configuration',
    run: par(details({ ...CARD, credential_configuration_id: 'nothing' })),
    expected: rejected('invalid_authorization_details'),
  },
  { row: 23, title: 'details with a property that is unknown', run: par(details({ ...CARD, more: 1 })), expected: accepted(201) },
  {
    row: 24,
    title: 'details for another issuer',
    run: par(details({ ...CARD, locations: ['https://other.example'] })),
    expected: rejected('invalid_authorization_details'),
  },
  { row: 25, title: 'an unknown issuer_state', run: par({ ...scope, issuer_state: 'unknown' }), expected: rejected('invalid_request') },
  {
    row: 25,
    title: 'the issuer_state of an offer that has expired',
    run: async (world) => {
      const { uri } = await world.offer('open', ['card'], { flow: 'authorization_code', expiresIn: 60 });
      const issuer_state = new URL(uri).searchParams.get('credential_offer_uri')?.split('/').at(-1) ?? '';
      return world.later(61, () => world.wallet().par({ ...scope, issuer_state }));
    },
    expected: rejected('invalid_request'),
  },
  {
    row: 25,
    title: 'the issuer_state of another tenant',
    run: async (world) => {
      const { uri } = await world.offer('plain', ['card'], { flow: 'authorization_code' });
      const issuer_state = new URL(uri).searchParams.get('credential_offer_uri')?.split('/').at(-1) ?? '';
      return world.wallet().par({ ...scope, issuer_state });
    },
    expected: rejected('invalid_request'),
  },
  {
    row: 26,
    title: 'a DPoP proof of another key than dpop_jkt',
    run: (world) => {
      const wallet = world.wallet();
      const form = { ...scope, dpop_jkt: 'x'.repeat(43) };
      return wallet.par(form, { DPoP: dpopProof(wallet.dpopKey, `${wallet.issuer}/par`) });
    },
    expected: rejected('invalid_dpop_proof'),
  },
  {
    row: 27,
    title: 'a DPoP proof without the nonce that is demanded',
    run: async (world) => {
      const wallet = world.wallet('strict');
      const headers = await attestedHeaders(world, wallet, 'par');
      return wallet.par(scope, { ...headers, DPoP: dpopProof(wallet.dpopKey, `${wallet.issuer}/par`) });
    },
    expected: { status: 400, error: 'use_dpop_nonce', headers: { 'dpop-nonce': /^[A-Za-z0-9_-]{16,}$/ } },
  },
  {
    row: 28,
    title: 'an authorization request that was not pushed',
    run: ({ service }) => service.call('GET', `/open/authorize?${new URLSearchParams({ ...AUTHORIZATION_REQUEST, ...scope })}`),
    expected: { page: 400 },
  },
  {
    row: 29,
    title: 'a request_uri that has expired',
    run: async (world) => {
      const { request_uri } = (await world.wallet().par(scope)).body;
      const query = new URLSearchParams({ client_id: CLIENT_ID, request_uri });
      return world.later(61, () => world.service.call('GET', `/open/authorize?${query}`));
    },
    expected: { page: 400 },
  },
  {
    row: 29,
    title: 'a request_uri of another client',
    run: async (world) => {
      const { request_uri } = (await world.wallet().par(scope)).body;
      const query = new URLSearchParams({ client_id: 'https://other.example', request_uri });
      return world.service.call('GET', `/open/authorize?${query}`);
    },
    expected: { page: 400 },
  },
  {
    row: 29,
    title: 'a request_uri that was used up',
    run: async (world) => {
      const { request_uri } = (await world.wallet().par(scope)).body;
      await world.wallet().decide(request_uri);
      const query = new URLSearchParams({ client_id: CLIENT_ID, request_uri });
      return world.service.call('GET', `/open/authorize?${query}`);
    },
    expected: { page: 400 },
  },
  {
    row: 30,
    title: 'a request_uri that is opened again before the decision',
    run: async (world) => {
      const { request_uri } = (await world.wallet().par(scope)).body;
      const query = new URLSearchParams({ client_id: CLIENT_ID, request_uri });
      await world.service.call('GET', `/open/authorize?${query}`);
      return world.service.call('GET', `/open/authorize?${query}`);
    },
    expected: accepted(),
  },
  {
    row: 31,
    title: 'a user that declines',
    run: async (world) => {
      const { request_uri } = (await world.wallet().par(scope)).body;
      return world.wallet().decide(request_uri, 'deny');
    },
    expected: { redirected: 'access_denied' },
  },
  {
    row: 26,
    title: 'a DPoP proof of the key that dpop_jkt announces',
    run: (world) => {
      const wallet = world.wallet();
      return wallet.par(scope, { DPoP: dpopProof(newKey(), `${wallet.issuer}/par`) });
    },
    expected: accepted(201),
  },
];
