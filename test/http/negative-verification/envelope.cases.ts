import { expect } from 'chai';
import { encryptResponse, type FetchedRequest, responseForm } from '../../support/present.ts';
import type { Answer } from '../../support/test-service.ts';
import { accepted, type Case, kept, noted, refused, type World } from './world.ts';

const PLAIN = { responseMode: 'direct_post' };

const vp = (world: World, asked: FetchedRequest) => ({ card: [world.card(asked)] });
const text = (world: World, asked: FetchedRequest) => JSON.stringify(vp(world, asked));
const stateOf = ({ payload }: FetchedRequest): string => payload['state'];
const sealed = (world: World, asked: FetchedRequest, key = asked) =>
  encryptResponse(key, { vp_token: vp(world, asked), state: stateOf(asked) });
const send = ({ service }: World, { payload }: FetchedRequest, form: Record<string, string>) =>
  service.call('POST', payload['response_uri'], { form });
const form =
  (make: (world: World, asked: FetchedRequest) => Record<string, string> | Promise<Record<string, string>>) =>
  async (world: World, asked: FetchedRequest): Promise<Answer> =>
    send(world, asked, await make(world, asked));

/** The post of a wallet, before anything in it is looked at (OpenID4VP 1.0 sections 8.2, 8.3 and 8.5). */
export const envelopeCases: readonly Case[] = [
  {
    row: 31,
    what: 'a body of JSON',
    configuration: PLAIN,
    run: (world, asked) =>
      world.service.call('POST', asked.payload['response_uri'], { json: { vp_token: vp(world, asked), state: stateOf(asked) } }),
    expected: kept(415),
  },
  {
    row: 32,
    what: 'a body over the size limit',
    configuration: PLAIN,
    run: form((_, asked) => ({ vp_token: 'x'.repeat(2_700_000), state: stateOf(asked) })),
    expected: kept(413),
  },
  { row: 33, what: 'neither vp_token, response nor error', run: form((_, asked) => ({ state: stateOf(asked) })), expected: kept() },
  { row: 33, what: 'an empty response', run: form((_, asked) => ({ response: '', state: stateOf(asked) })), expected: kept() },
  { row: 33, what: 'an empty body', run: form(() => ({})), expected: kept() },
  {
    row: 34,
    what: 'a plain vp_token though it was to be encrypted',
    run: form((world, asked) => ({ vp_token: text(world, asked), state: stateOf(asked) })),
    expected: refused('response_mode'),
  },
  {
    row: 35,
    what: 'an encrypted response though it was not asked for',
    configuration: PLAIN,
    run: form(async (world, asked) => ({ response: await sealed(world, asked, await world.ask()) })),
    expected: refused('response_mode'),
  },
  ...[PLAIN, {}].map(
    (configuration): Case => ({
      row: 36,
      what: `vp_token and error, ${JSON.stringify(configuration)}`,
      configuration,
      run: form((world, asked) => ({ vp_token: text(world, asked), state: stateOf(asked), error: 'access_denied' })),
      expected: refused('response_mode'),
    }),
  ),
  {
    row: 36,
    what: 'vp_token and error inside the ciphertext',
    run: form(async (world, asked) => ({
      response: await encryptResponse(asked, { vp_token: vp(world, asked), state: stateOf(asked), error: 'access_denied' }),
    })),
    expected: refused('response_mode'),
  },
  {
    row: 37,
    what: 'response and vp_token',
    run: form(async (world, asked) => ({ response: await sealed(world, asked), vp_token: text(world, asked) })),
    expected: refused('response_mode'),
  },
  { row: 38, what: 'no state', configuration: PLAIN, run: form((world, asked) => ({ vp_token: text(world, asked) })), expected: kept() },
  {
    row: 38,
    what: 'no state inside the ciphertext',
    run: form(async (world, asked) => ({ response: await encryptResponse(asked, { vp_token: vp(world, asked) }) })),
    expected: kept(),
  },
  {
    row: 39,
    what: 'the state of another session',
    configuration: PLAIN,
    run: async (world, asked) => {
      const other = await world.ask(PLAIN);
      const answer = await send(world, asked, { vp_token: text(world, asked), state: stateOf(other) });
      expect((await world.session(other))['status'], 'the other one').to.equal('fetched');
      return answer;
    },
    expected: kept(),
  },
  {
    row: 40,
    what: 'the right state at the address of another session',
    configuration: PLAIN,
    run: async (world, asked) => {
      const other = await world.ask(PLAIN);
      const answer = await send(world, other, await responseForm(asked, vp(world, asked)));
      expect((await world.session(other))['status'], 'the other one').to.equal('fetched');
      return answer;
    },
    expected: kept(),
  },
  {
    row: 41,
    what: 'a second answer',
    run: async (world, asked) => {
      expect((await world.answer(asked, vp(world, asked))).status).to.equal(200);
      return world.answer(asked, vp(world, asked));
    },
    expected: { status: 400, session: 'completed' },
  },
  ...[{}, { webhook: null }].map(
    (configuration): Case => ({
      row: 42,
      what: `several answers at once, ${JSON.stringify(configuration)}`,
      configuration,
      async run(world, asked) {
        const answers = await Promise.all([1, 2, 3, 4].map(() => world.answer(asked, vp(world, asked))));
        expect(answers.filter(({ status }) => status === 200)).to.have.length(1);
        return answers.find(({ status }) => status !== 200) as Answer;
      },
      expected: { status: 400, session: 'completed' },
      async also(world, asked) {
        expect(world.told(asked).length, 'the backend hears of one').to.be.at.most(1);
      },
    }),
  ),
  {
    row: 43,
    what: 'an answer after the time',
    run: (world, asked) => world.later(301, () => world.answer(asked, vp(world, asked))),
    // The session is seen by the clock of the tests again, and was not touched.
    expected: kept(410),
    also: (world, asked) =>
      world.later(301, async () => {
        expect((await world.session(asked))['status']).to.equal('expired');
      }),
  },
  {
    row: 44,
    what: 'an answer to a request that a wallet had from elsewhere',
    run: (world, asked) => world.answer(asked, vp(world, asked)),
    expected: accepted,
  },
  ...[PLAIN, {}].map(
    (configuration): Case => ({
      row: configuration === PLAIN ? 45 : 48,
      what: `an error of the wallet, in the clear, ${JSON.stringify(configuration)}`,
      configuration,
      run: form((_, asked) => ({ error: 'access_denied', state: stateOf(asked) })),
      expected: noted('access_denied'),
      async also(world, asked) {
        expect(world.told(asked)).to.deep.equal([]);
      },
    }),
  ),
  {
    row: 45,
    what: 'an error of the wallet inside the ciphertext',
    run: form(async (_, asked) => ({
      response: await encryptResponse(asked, { error: 'vp_formats_not_supported', state: stateOf(asked) }),
    })),
    expected: noted('vp_formats_not_supported'),
  },
  ...[{ state: 'wrong' }, {}].map(
    (state): Case => ({
      row: 46,
      what: `an error with the state ${JSON.stringify(state)}`,
      run: form(() => ({ error: 'access_denied', ...state })),
      expected: kept(),
    }),
  ),
  {
    row: 47,
    what: 'an error with a book of markup',
    run: form((_, asked) => ({
      error: 'access_denied',
      error_description: `<script>alert(1)</script>\u0007${'long '.repeat(20_000)}`,
      state: stateOf(asked),
    })),
    expected: noted('access_denied'),
    async also(world, asked) {
      const { message } = (await world.session(asked))['failure'];
      expect(message).to.have.length.lessThan(400);
      expect(message).to.not.match(/[<>\p{Cc}]/u);
    },
  },
  {
    row: 49,
    what: 'unknown fields beside the answer',
    run: form(async (world, asked) => ({ response: await sealed(world, asked), presentation_submission: '{}', extra: 'x' })),
    expected: accepted,
  },
];
