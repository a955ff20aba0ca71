import type { Asked } from '../../support/present.ts';
import { encrypt } from '../../support/present.ts';
import { type Case, noted, PAGE, type PresentationCase, refused, THROUGH_PAGE, type World } from './world.ts';

const EVIL = 'https://evil.example';

const card = (row: number, what: string, aud: (asked: Asked) => unknown): PresentationCase => ({
  row,
  what,
  reason: 'aud_mismatch',
  configuration: THROUGH_PAGE,
  present: (world, asked) => world.card(asked, { kb: { aud: aud(asked) } }),
});
const licence = (
  row: number,
  what: string,
  transcript: (world: World, asked: Asked) => Buffer,
): PresentationCase => ({
  row,
  what,
  reason: 'device_signature',
  format: 'mso_mdoc',
  configuration: THROUGH_PAGE,
  present: (world, asked) => world.licence(asked, { transcript: transcript(world, asked) }),
});

/** Presentations through the Digital Credentials API (OpenID4VP 1.0 appendix A.4). */
export const pagePresentationCases: readonly PresentationCase[] = [
  card(83, 'the client identifier as audience of a page', ({ payload }) => payload['client_id']),
  card(83, 'the address of the answer as audience of a page', ({ uri }) => uri),
  card(152, 'another page as audience', () => `origin:${EVIL}`),
  card(152, 'the page without prefix as audience', () => PAGE),
  card(152, 'the page with the prefix of earlier drafts', () => `web-origin:${PAGE}`),
  card(152, 'the page with a slash', () => `origin:${PAGE}/`),
  card(152, 'the page in other letters', () => `origin:${PAGE.toUpperCase()}`),
  licence(121, 'a redirect transcript for a page', (world, asked) =>
    world.transcript(asked, { responseUri: asked.uri }),
  ),
  licence(122, 'a transcript of the origin with its prefix', (world, asked) =>
    world.pageTranscript(asked, { origin: `origin:${PAGE}` }),
  ),
  licence(122, 'a transcript of the origin with a slash', (world, asked) =>
    world.pageTranscript(asked, { origin: `${PAGE}/` }),
  ),
  licence(152, 'a transcript of another page', (world, asked) =>
    world.pageTranscript(asked, { origin: EVIL }),
  ),
  licence(152, 'a transcript of another nonce', (world, asked) =>
    world.pageTranscript(asked, { nonce: 'other' }),
  ),
  {
    row: 120,
    what: 'a transcript for a page without thumbprint',
    reason: 'device_signature',
    format: 'mso_mdoc',
    configuration: { ...THROUGH_PAGE, responseMode: 'direct_post.jwt' },
    present: (world, asked) =>
      world.licence(asked, { transcript: world.pageTranscript(asked, { encryptionKey: undefined }) }),
  },
];

const hand = ({ service }: World, { uri }: Asked, json: unknown) => service.call('POST', uri, { json });
const PLAIN = { ...THROUGH_PAGE, responseMode: 'direct_post' };

/** What a page hands over. */
export const pageResponseCases: readonly Case[] = [
  {
    row: 151,
    what: 'a presentation in the clear though it was to be encrypted',
    configuration: THROUGH_PAGE,
    run: (world, asked) => hand(world, asked, { vp_token: { card: [world.card(asked)] } }),
    expected: refused('response_mode'),
  },
  {
    row: 151,
    what: 'an encrypted response of a page though it was not asked for',
    configuration: PLAIN,
    run: async (world, asked) => {
      const other = await world.ask(THROUGH_PAGE);
      const response = await encrypt(other, { vp_token: { card: [world.card(asked)] } });
      return hand(world, asked, { response });
    },
    expected: refused('response_mode'),
  },
  {
    row: 151,
    what: 'a response and a presentation beside it',
    configuration: THROUGH_PAGE,
    run: async (world, asked) => {
      const vp_token = { card: [world.card(asked)] };
      return hand(world, asked, { response: await encrypt(asked, { vp_token }), vp_token });
    },
    expected: refused('response_mode'),
  },
  ...[THROUGH_PAGE, PLAIN].map(
    (configuration): Case => ({
      row: 153,
      what: `an error of the wallet, ${JSON.stringify(configuration)}`,
      configuration,
      run: (world, asked) => hand(world, asked, { error: 'access_denied' }),
      expected: noted('access_denied'),
    }),
  ),
];
