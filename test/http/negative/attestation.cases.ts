import { newKey, now, type RawWallet } from '../../support/raw-wallet.ts';
import type { Answer } from '../../support/test-service.ts';
import { accepted, attestedHeaders, type Case, rejected, type World } from './world.ts';

type Options = Parameters<typeof attestedHeaders>[3];

const INVALID = rejected('invalid_client_attestation');

/** Pushes a request to the open tenant with an attestation, which is optional there and must be valid if present. */
const push =
  (options: Options, changeHeaders: (headers: Record<string, string>) => Record<string, string> = (headers) => headers) =>
  async (world: World): Promise<Answer> => {
    const wallet = world.wallet();
    return send(wallet, changeHeaders(await attestedHeaders(world, wallet, 'par', options)));
  };
const send = (wallet: RawWallet, headers: Record<string, string>) => wallet.par({ scope: 'scope-card' }, headers);

/** Client attestations; the strict tenant gets the requests for which its requirements matter. */
export const attestationCases: readonly Case[] = [
  {
    row: 60,
    title: 'two attestations',
    run: push({}, (headers) => ({
      ...headers,
      'OAuth-Client-Attestation': `${headers['OAuth-Client-Attestation']}, ${headers['OAuth-Client-Attestation']}`,
    })),
    expected: INVALID,
  },
  {
    row: 60,
    title: 'an attestation without a proof of possession',
    run: push({}, ({ 'OAuth-Client-Attestation-PoP': _pop, ...headers }) => headers),
    expected: INVALID,
  },
  {
    row: 61,
    title: 'an attestation whose signature is broken',
    run: push({}, (headers) => ({
      ...headers,
      'OAuth-Client-Attestation': (headers['OAuth-Client-Attestation'] ?? '').replace(/.{4}$/, 'AAAA'),
    })),
    expected: INVALID,
  },
  {
    row: 62,
    title: 'an attestation of a provider on no list',
    run: async (world) => {
      const { operator } = world.provider;
      return push({ attestation: { signer: operator } })(world);
    },
    expected: INVALID,
  },
  { row: 63, title: 'an attestation that has expired', run: push({ attestation: { payload: { exp: now() - 70 } } }), expected: INVALID },
  {
    row: 64,
    title: 'an attestation that is older than the tenant likes',
    run: async (world) => {
      const wallet = world.wallet('strict');
      const attestation = { payload: { iat: now() - 7200 } };
      return send(wallet, await attestedHeaders(world, wallet, 'par', { attestation }));
    },
    expected: rejected('use_fresh_attestation'),
  },
  { row: 65, title: 'an attestation without sub', run: push({ attestation: { payload: { sub: undefined } } }), expected: INVALID },
  { row: 65, title: 'an attestation without cnf', run: push({ attestation: { payload: { cnf: undefined } } }), expected: INVALID },
  { row: 65, title: 'an attestation of the type JWT', run: push({ attestation: { header: { typ: 'JWT' } } }), expected: INVALID },
  { row: 66, title: 'an attestation without x5c', run: push({ attestation: { header: { x5c: undefined } } }), expected: INVALID },
  {
    row: 66,
    title: 'an attestation with the anchor in x5c',
    run: async (world) => {
      const x5c = [world.provider.signer.certificate, world.provider.root.certificate];
      return push({ attestation: { header: { x5c } } })(world);
    },
    expected: INVALID,
  },
  {
    row: 67,
    title: 'an attestation that was revoked',
    run: async (world) => {
      world.provider.statuses.set(7, 1);
      return push({ attestation: { payload: { status: world.provider.status(7) } } })(world);
    },
    expected: INVALID,
  },
  {
    row: 68,
    title: 'a proof of possession by another key',
    run: async (world) => {
      const wallet = world.wallet();
      const ownHeaders = await attestedHeaders(world, wallet, 'par');
      const otherHeaders = await attestedHeaders(world, wallet, 'par', { instance: newKey() });
      const pop = otherHeaders['OAuth-Client-Attestation-PoP'] ?? '';
      return send(wallet, { ...ownHeaders, 'OAuth-Client-Attestation-PoP': pop });
    },
    expected: INVALID,
  },
  {
    row: 69,
    title: 'a proof of possession for the endpoint',
    run: (world) => push({ audience: `${world.wallet().issuer}/token` })(world),
    expected: INVALID,
  },
  {
    row: 69,
    title: 'a proof of possession for another server',
    run: (world) => push({ audience: `${world.wallet().issuer}/chained-as` })(world),
    expected: INVALID,
  },
  {
    row: 70,
    title: 'a proof of possession that was used',
    run: async (world) => {
      const wallet = world.wallet();
      const { DPoP: _proof, ...headers } = await attestedHeaders(world, wallet, 'par');
      await send(wallet, headers);
      return send(wallet, headers);
    },
    expected: INVALID,
  },
  { row: 70, title: 'a proof of possession of ten minutes ago', run: push({ pop: { payload: { iat: now() - 600 } } }), expected: INVALID },
  ...(
    [
      ['no challenge', { challenge: null }],
      ['an invented challenge', { challenge: 'invented' }],
    ] as const
  ).map(
    ([title, options]): Case => ({
      row: 71,
      title,
      run: push(options),
      expected: {
        status: 400,
        error: 'use_attestation_challenge',
        headers: { 'oauth-client-attestation-challenge': /^[A-Za-z0-9_-]{16,512}$/ },
      },
    }),
  ),
  { row: 72, title: 'a proof of possession without iss', run: push({ pop: { payload: { iss: undefined } } }), expected: accepted(201) },
  {
    row: 73,
    title: 'a proof of possession of another party',
    run: push({ pop: { payload: { iss: 'https://x.example' } } }),
    expected: INVALID,
  },
];
