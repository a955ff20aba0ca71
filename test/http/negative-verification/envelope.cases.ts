import { expect } from 'chai';
import { encryptResponse, type FetchedRequest, responseForm } from '../../support/present.ts';
import type { Answer } from '../../support/test-service.ts';
import { accepted, type Case, failedByWallet, rejected, stillOpen, type World } from './world.ts';

const UNENCRYPTED = { responseMode: 'direct_post' };

const vp = (world: World, request: FetchedRequest) => ({ card: [world.card(request)] });
const text = (world: World, request: FetchedRequest) => JSON.stringify(vp(world, request));
const stateOf = ({ payload }: FetchedRequest): string => payload['state'];
const encryptedResponse = (world: World, request: FetchedRequest, key = request) =>
  encryptResponse(key, { vp_token: vp(world, request), state: stateOf(request) });
const send = ({ service }: World, { payload }: FetchedRequest, form: Record<string, string>) =>
  service.call('POST', payload['response_uri'], { form });
const form =
  (make: (world: World, request: FetchedRequest) => Record<string, string> | Promise<Record<string, string>>) =>
  async (world: World, request: FetchedRequest): Promise<Answer> =>
    send(world, request, await make(world, request));

/** The POST request of a wallet, before its content is verified (OpenID4VP 1.0 sections 8.2, 8.3 and 8.5). */
export const envelopeCases: readonly Case[] = [
  {
    row: 31,
    title: 'a body of JSON',
    configuration: UNENCRYPTED,
    run: (world, request) =>
      world.service.call('POST', request.payload['response_uri'], { json: { vp_token: vp(world, request), state: stateOf(request) } }),
    expected: stillOpen(415),
  },
  {
    row: 32,
    title: 'a body over the size limit',
    configuration: UNENCRYPTED,
    run: form((_, request) => ({ vp_token: 'x'.repeat(2_700_000), state: stateOf(request) })),
    expected: stillOpen(413),
  },
  {
    row: 33,
    title: 'neither vp_token, response nor error',
    run: form((_, request) => ({ state: stateOf(request) })),
    expected: stillOpen(),
  },
  { row: 33, title: 'an empty response', run: form((_, request) => ({ response: '', state: stateOf(request) })), expected: stillOpen() },
  { row: 33, title: 'an empty body', run: form(() => ({})), expected: stillOpen() },
  {
    row: 34,
    title: 'a plain vp_token though it was to be encrypted',
    run: form((world, request) => ({ vp_token: text(world, request), state: stateOf(request) })),
    expected: rejected('response_mode'),
  },
  {
    row: 35,
    title: 'an encrypted response to a request for an unencrypted one',
    configuration: UNENCRYPTED,
    run: form(async (world, request) => ({ response: await encryptedResponse(world, request, await world.ask()) })),
    expected: rejected('response_mode'),
  },
  ...[UNENCRYPTED, {}].map(
    (configuration): Case => ({
      row: 36,
      title: `vp_token and error, ${JSON.stringify(configuration)}`,
      configuration,
      run: form((world, request) => ({ vp_token: text(world, request), state: stateOf(request), error: 'access_denied' })),
      expected: rejected('response_mode'),
    }),
  ),
  {
    row: 36,
    title: 'vp_token and error inside the ciphertext',
    run: form(async (world, request) => ({
      response: await encryptResponse(request, { vp_token: vp(world, request), state: stateOf(request), error: 'access_denied' }),
    })),
    expected: rejected('response_mode'),
  },
  {
    row: 37,
    title: 'response and vp_token',
    run: form(async (world, request) => ({ response: await encryptedResponse(world, request), vp_token: text(world, request) })),
    expected: rejected('response_mode'),
  },
  {
    row: 38,
    title: 'no state',
    configuration: UNENCRYPTED,
    run: form((world, request) => ({ vp_token: text(world, request) })),
    expected: stillOpen(),
  },
  {
    row: 38,
    title: 'no state inside the ciphertext',
    run: form(async (world, request) => ({ response: await encryptResponse(request, { vp_token: vp(world, request) }) })),
    expected: stillOpen(),
  },
  {
    row: 39,
    title: 'the state of another session',
    configuration: UNENCRYPTED,
    run: async (world, request) => {
      const otherRequest = await world.ask(UNENCRYPTED);
      const answer = await send(world, request, { vp_token: text(world, request), state: stateOf(otherRequest) });
      expect((await world.session(otherRequest))['status'], 'the other session').to.equal('fetched');
      return answer;
    },
    expected: stillOpen(),
  },
  {
    row: 40,
    title: 'the right state at the address of another session',
    configuration: UNENCRYPTED,
    run: async (world, request) => {
      const otherRequest = await world.ask(UNENCRYPTED);
      const answer = await send(world, otherRequest, await responseForm(request, vp(world, request)));
      expect((await world.session(otherRequest))['status'], 'the other session').to.equal('fetched');
      return answer;
    },
    expected: stillOpen(),
  },
  {
    row: 41,
    title: 'a second answer',
    run: async (world, request) => {
      expect((await world.answer(request, vp(world, request))).status).to.equal(200);
      return world.answer(request, vp(world, request));
    },
    expected: { status: 400, session: 'completed' },
  },
  ...[{}, { webhook: null }].map(
    (configuration): Case => ({
      row: 42,
      title: `several answers at once, ${JSON.stringify(configuration)}`,
      configuration,
      async run(world, request) {
        const responses = await Promise.all([1, 2, 3, 4].map(() => world.answer(request, vp(world, request))));
        expect(responses.filter(({ status }) => status === 200)).to.have.length(1);
        return responses.find(({ status }) => status !== 200) as Answer;
      },
      expected: { status: 400, session: 'completed' },
      async assertAfter(world, request) {
        expect(world.webhookBodies(request).length, 'the backend gets at most one result').to.be.at.most(1);
      },
    }),
  ),
  {
    row: 43,
    title: 'an answer after the time',
    run: (world, request) => world.later(301, () => world.answer(request, vp(world, request))),
    // The session is read with the clock of the tests again, and is unchanged.
    expected: stillOpen(410),
    assertAfter: (world, request) =>
      world.later(301, async () => {
        expect((await world.session(request))['status']).to.equal('expired');
      }),
  },
  {
    row: 44,
    title: 'a response to a request that the wallet got from another source',
    run: (world, request) => world.answer(request, vp(world, request)),
    expected: accepted,
  },
  ...[UNENCRYPTED, {}].map(
    (configuration): Case => ({
      row: configuration === UNENCRYPTED ? 45 : 48,
      title: `an error of the wallet, in the clear, ${JSON.stringify(configuration)}`,
      configuration,
      run: form((_, request) => ({ error: 'access_denied', state: stateOf(request) })),
      expected: failedByWallet('access_denied'),
      async assertAfter(world, request) {
        expect(world.webhookBodies(request)).to.deep.equal([]);
      },
    }),
  ),
  {
    row: 45,
    title: 'an error of the wallet inside the ciphertext',
    run: form(async (_, request) => ({
      response: await encryptResponse(request, { error: 'vp_formats_not_supported', state: stateOf(request) }),
    })),
    expected: failedByWallet('vp_formats_not_supported'),
  },
  ...[{ state: 'wrong' }, {}].map(
    (state): Case => ({
      row: 46,
      title: `an error with the state ${JSON.stringify(state)}`,
      run: form(() => ({ error: 'access_denied', ...state })),
      expected: stillOpen(),
    }),
  ),
  {
    row: 47,
    title: 'an error with a book of markup',
    run: form((_, request) => ({
      error: 'access_denied',
      error_description: `<script>alert(1)</script>\u0007${'long '.repeat(20_000)}`,
      state: stateOf(request),
    })),
    expected: failedByWallet('access_denied'),
    async assertAfter(world, request) {
      const { message } = (await world.session(request))['failure'];
      expect(message).to.have.length.lessThan(400);
      expect(message).to.not.match(/[<>\p{Cc}]/u);
    },
  },
  {
    row: 49,
    title: 'unknown fields beside the answer',
    run: form(async (world, request) => ({ response: await encryptedResponse(world, request), presentation_submission: '{}', extra: 'x' })),
    expected: accepted,
  },
];
