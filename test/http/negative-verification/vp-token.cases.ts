import { expect } from 'chai';
import { type Asked, encrypt, formOf } from '../../support/present.ts';
import { withoutIssuers } from '../../support/results.ts';
import type { Members } from '../../support/sd-jwt-maker.ts';
import {
  accepted,
  CARD_QUERY,
  type Case,
  LICENCE_QUERY,
  PASS_QUERY,
  type PresentationCase,
  refused,
  type World,
} from './world.ts';

const MODES = [{}, { responseMode: 'direct_post' }];
const modeOf = (mode: object) => ('responseMode' in mode ? 'in the clear' : 'encrypted');

/** One shape, in both modes. */
const shape = (row: number, what: string, make: (text: string, asked: Asked) => unknown): readonly Case[] =>
  MODES.map((configuration) => ({
    row,
    what: `${what}, ${modeOf(configuration)}`,
    configuration,
    run: (world, asked) => world.answer(asked, make(world.card(asked), asked)),
    expected: refused('malformed'),
  }));

const TWO = [CARD_QUERY, PASS_QUERY];
const both = (...credential_sets: object[]) => ({ dcql_query: { credentials: TWO, credential_sets } });

const incomplete = (row: number, what: string, configuration: Members, missing: string): Case => ({
  row,
  what,
  configuration,
  run: (world, asked) => world.answer(asked, { card: [world.card(asked)] }),
  expected: refused('presentation_refused'),
  async also(world, asked) {
    expect((await world.session(asked))['failure'].message).to.include(missing);
    expect(world.told(asked)[0]?.['credentials']).to.deep.include({ id: 'card', error: 'response_refused' });
  },
});

/** What stands in `vp_token` and what has to (OpenID4VP 1.0 sections 6.4 and 8.1). */
export const vpTokenCases: readonly Case[] = [
  ...shape(61, 'vp_token is text', (text) => text),
  ...shape(61, 'vp_token is an array', (text) => [text]),
  ...shape(61, 'vp_token is null', () => null),
  ...shape(61, 'vp_token is a number', () => 1),
  ...shape(62, 'text instead of an array', (text) => ({ card: text })),
  ...shape(62, 'an object instead of an array', (text) => ({ card: { 0: text } })),
  ...shape(63, 'an empty array', () => ({ card: [] })),
  ...shape(64, 'two presentations without multiple', (text) => ({ card: [text, text] })),
  ...shape(65, 'an id that no query has', (text) => ({ card: [text], other: [text] })),
  ...shape(65, 'an id in another case', (text) => ({ Card: [text] })),
  ...shape(67, 'an object as presentation', () => ({ card: [{}] })),
  ...shape(67, 'a number as presentation', () => ({ card: [1] })),
  ...shape(67, 'null as presentation', () => ({ card: [null] })),
  {
    row: 66,
    what: 'an id that stands there twice, in the clear',
    configuration: { responseMode: 'direct_post' },
    run: (world, { payload, ...asked }) => {
      const list = JSON.stringify([world.card({ payload, ...asked })]);
      const form = { vp_token: `{"card":${list},"card":${list}}`, state: payload['state'] };
      return world.service.call('POST', payload['response_uri'], { form });
    },
    expected: refused('malformed'),
  },
  {
    row: 66,
    what: 'an id that stands there twice, once with an escape',
    configuration: { responseMode: 'direct_post' },
    run: (world, { payload, ...asked }) => {
      const list = JSON.stringify([world.card({ payload, ...asked })]);
      const form = { vp_token: `{"card":${list},"c\\u0061rd":${list}}`, state: payload['state'] };
      return world.service.call('POST', payload['response_uri'], { form });
    },
    expected: refused('malformed'),
  },
  incomplete(68, 'a query without answer', { dcql_query: { credentials: TWO } }, 'missing pass'),
  incomplete(69, 'half of an option', both({ options: [['card', 'pass']] }), 'credential_sets[0]'),
  incomplete(
    70,
    'the optional set alone',
    both({ options: [['pass']] }, { options: [['card']], required: false }),
    'credential_sets[0]',
  ),
  {
    row: 72,
    what: 'two credentials that are swapped',
    configuration: { dcql_query: { credentials: TWO } },
    run: (world, asked) => world.answer(asked, { card: [world.pass(asked)], pass: [world.card(asked)] }),
    expected: refused('presentation_refused'),
    async also(world, asked) {
      expect(withoutIssuers(world.told(asked)[0]?.['credentials'])).to.deep.equal([
        { id: 'card', error: 'type_mismatch' },
        { id: 'pass', error: 'type_mismatch' },
      ]);
    },
  },
  {
    row: 73,
    what: 'a presentation_submission of earlier drafts',
    run: async (world, asked) => {
      const submission = { id: 'x', definition_id: 'y', descriptor_map: [] };
      const vp_token = { card: [world.card(asked)] };
      const response = await encrypt(asked, {
        vp_token,
        state: asked.payload['state'],
        presentation_submission: submission,
      });
      return world.service.call('POST', asked.payload['response_uri'], { form: { response } });
    },
    expected: accepted,
  },
  {
    row: 73,
    what: 'a presentation_submission in the form',
    configuration: { responseMode: 'direct_post' },
    run: async (world, asked) => {
      const form = await formOf(asked, { card: [world.card(asked)] });
      return world.service.call('POST', asked.payload['response_uri'], {
        form: { ...form, presentation_submission: '{' },
      });
    },
    expected: accepted,
  },
];

const licenceOf = (world: World, asked: Asked) => world.licence(asked);

/** Presentations that stand in the wrong place. */
export const misplacedCases: readonly PresentationCase[] = [
  { row: 71, what: 'an mdoc where an SD-JWT VC was asked for', reason: 'malformed', present: licenceOf },
  {
    row: 71,
    what: 'an SD-JWT VC where an mdoc was asked for',
    format: LICENCE_QUERY.format as 'mso_mdoc',
    reason: 'malformed',
    present: (world, asked) => world.card(asked),
  },
];
