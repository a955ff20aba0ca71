import { newKey, now, type RawWallet } from '../../support/raw-wallet.ts';
import type { Answer } from '../../support/test-service.ts';
import { accepted, attestedHeaders, type Case, refused, type World } from './world.ts';

type Options = Parameters<typeof attestedHeaders>[3];

const INVALID = refused('invalid_client_attestation');

/** A request that is pushed to the open tenant with an attestation: it is welcome there, and then it has to be right. */
const push =
  (options: Options, bend: (headers: Record<string, string>) => Record<string, string> = (headers) => headers) =>
  async (world: World): Promise<Answer> => {
    const wallet = world.wallet();
    return send(wallet, bend(await attestedHeaders(world, wallet, 'par', options)));
  };
const send = (wallet: RawWallet, headers: Record<string, string>) => wallet.par({ scope: 'scope-card' }, headers);

/** Client attestations; the strict tenant is asked where a demand of it counts. */
export const attestationCases: readonly Case[] = [
  {
    row: 60,
    what: 'two attestations',
    run: push({}, (headers) => ({
      ...headers,
      'OAuth-Client-Attestation': `${headers['OAuth-Client-Attestation']}, ${headers['OAuth-Client-Attestation']}`,
    })),
    expected: INVALID,
  },
  {
    row: 60,
    what: 'an attestation without a proof of possession',
    run: push({}, ({ 'OAuth-Client-Attestation-PoP': _pop, ...headers }) => headers),
    expected: INVALID,
  },
  {
    row: 61,
    what: 'an attestation whose signature is broken',
    run: push({}, (headers) => ({
      ...headers,
      'OAuth-Client-Attestation': (headers['OAuth-Client-Attestation'] ?? '').replace(/.{4}$/, 'AAAA'),
    })),
    expected: INVALID,
  },
  {
    row: 62,
    what: 'an attestation of a provider on no list',
    run: async (world) => {
      const { operator } = world.provider;
      return push({ attestation: { signer: operator } })(world);
    },
    expected: INVALID,
  },
  { row: 63, what: 'an attestation that has expired', run: push({ attestation: { payload: { exp: now() - 70 } } }), expected: INVALID },
  {
    row: 64,
    what: 'an attestation that is older than the tenant likes',
    run: async (world) => {
      const wallet = world.wallet('strict');
      const attestation = { payload: { iat: now() - 7200 } };
      return send(wallet, await attestedHeaders(world, wallet, 'par', { attestation }));
    },
    expected: refused('use_fresh_attestation'),
  },
  { row: 65, what: 'an attestation without sub', run: push({ attestation: { payload: { sub: undefined } } }), expected: INVALID },
  { row: 65, what: 'an attestation without cnf', run: push({ attestation: { payload: { cnf: undefined } } }), expected: INVALID },
  { row: 65, what: 'an attestation of the type JWT', run: push({ attestation: { header: { typ: 'JWT' } } }), expected: INVALID },
  { row: 66, what: 'an attestation without x5c', run: push({ attestation: { header: { x5c: undefined } } }), expected: INVALID },
  {
    row: 66,
    what: 'an attestation with the anchor in x5c',
    run: async (world) => {
      const x5c = [world.provider.signer.certificate, world.provider.root.certificate];
      return push({ attestation: { header: { x5c } } })(world);
    },
    expected: INVALID,
  },
  {
    row: 67,
    what: 'an attestation that was revoked',
    run: async (world) => {
      world.provider.statuses.set(7, 1);
      return push({ attestation: { payload: { status: world.provider.status(7) } } })(world);
    },
    expected: INVALID,
  },
  {
    row: 68,
    what: 'a proof of possession by another key',
    run: async (world) => {
      const wallet = world.wallet();
      const own = await attestedHeaders(world, wallet, 'par');
      const other = await attestedHeaders(world, wallet, 'par', { instance: newKey() });
      const pop = other['OAuth-Client-Attestation-PoP'] ?? '';
      return send(wallet, { ...own, 'OAuth-Client-Attestation-PoP': pop });
    },
    expected: INVALID,
  },
  {
    row: 69,
    what: 'a proof of possession for the endpoint',
    run: (world) => push({ audience: `${world.wallet().issuer}/token` })(world),
    expected: INVALID,
  },
  {
    row: 69,
    what: 'a proof of possession for another server',
    run: (world) => push({ audience: `${world.wallet().issuer}/chained-as` })(world),
    expected: INVALID,
  },
  {
    row: 70,
    what: 'a proof of possession that was used',
    run: async (world) => {
      const wallet = world.wallet();
      const { DPoP: _proof, ...headers } = await attestedHeaders(world, wallet, 'par');
      await send(wallet, headers);
      return send(wallet, headers);
    },
    expected: INVALID,
  },
  { row: 70, what: 'a proof of possession of ten minutes ago', run: push({ pop: { payload: { iat: now() - 600 } } }), expected: INVALID },
  ...(
    [
      ['no challenge', { challenge: null }],
      ['an invented challenge', { challenge: 'invented' }],
    ] as const
  ).map(
    ([what, options]): Case => ({
      row: 71,
      what,
      run: push(options),
      expected: {
        status: 400,
        error: 'use_attestation_challenge',
        headers: { 'oauth-client-attestation-challenge': /^[A-Za-z0-9_-]{16,512}$/ },
      },
    }),
  ),
  { row: 72, what: 'a proof of possession without iss', run: push({ pop: { payload: { iss: undefined } } }), expected: accepted(201) },
  {
    row: 73,
    what: 'a proof of possession of another party',
    run: push({ pop: { payload: { iss: 'https://x.example' } } }),
    expected: INVALID,
  },
];
