import { describe, type Family, held, open } from '../core/case.ts';
import { Skip } from '../core/skip.ts';
import { table } from '../core/table.ts';
import type { FetchedRequest } from '../targets/requests.ts';
import { encryptResponse, isEncrypted, queryOf, type Verifier } from '../targets/verifier.ts';
import { answerWith, presentsCard } from './presenting.ts';

const REFUSED = { status: [400, 404, 410, 413, 415] } as const;
const correctVpToken = async (verifier: Verifier, request: FetchedRequest) => ({ [queryOf(request).id]: [await verifier.card(request)] });
const completeResponse = async (verifier: Verifier, request: FetchedRequest) => ({
  vp_token: await correctVpToken(verifier, request),
  state: request.payload.state,
});
const requireEncrypted = (request: FetchedRequest): FetchedRequest => {
  if (!isEncrypted(request)) throw new Skip('answers to this verifier are not encrypted');
  return request;
};

export const responses: Family<Verifier> = {
  id: 'responses',
  title: 'Answers of wallets: replay, state, form',
  control: presentsCard,
  cases: [
    ...table<Verifier>(
      { section: 'OpenID4VP 1.0 section 14.1', why: 'a presentation is for one request, once', safe: REFUSED },
      {
        'an answer to another request': answerWith(async (verifier, request) =>
          verifier.answer(request, await correctVpToken(verifier, await verifier.ask())),
        ),
        'the whole answer to another request, letter by letter': answerWith(async (verifier, request) => {
          const otherRequest = await verifier.ask();
          if (!isEncrypted(otherRequest)) return verifier.plain(request, await completeResponse(verifier, otherRequest));
          return verifier.post(request, { response: await encryptResponse(otherRequest, await completeResponse(verifier, otherRequest)) });
        }),
        'another state': answerWith(async (verifier, request) => {
          if (request.payload.state === undefined) throw new Skip('the request has no state');
          return verifier.answer(request, await correctVpToken(verifier, request), { state: 'another' });
        }),
        'no state': answerWith(async (verifier, request) => {
          if (request.payload.state === undefined) throw new Skip('the request has no state');
          return verifier.answer(request, await correctVpToken(verifier, request), { state: undefined });
        }),
        'the state of another request': answerWith(async (verifier, request) => {
          const { state } = (await verifier.ask()).payload;
          if (state === undefined) throw new Skip('the request has no state');
          return verifier.answer(request, await correctVpToken(verifier, request), { state });
        }),
      },
    ),
    {
      name: 'an answer that came before',
      section: 'OpenID4VP 1.0 section 14.1',
      why: 'who saw an answer must not give it again',
      safe: REFUSED,
      async run(verifier) {
        const request = await verifier.ask();
        const content = await correctVpToken(verifier, request);
        const firstAnswer = await verifier.answer(request, content);
        const secondAnswer = await verifier.answer(request, content);
        if (firstAnswer.status >= 300) return { outcome: 'unclear', seen: `the first: ${describe(firstAnswer)}` };
        return secondAnswer.status >= 400 && secondAnswer.status < 500
          ? held(describe(secondAnswer))
          : open(`the second: ${describe(secondAnswer)}`);
      },
    },
    ...table<Verifier>(
      { section: 'OpenID4VP 1.0 section 8.2', why: 'an answer is a form of one kind', safe: REFUSED },
      {
        'an empty form': answerWith((verifier, request) => verifier.post(request, {})),
        'JSON instead of a form': answerWith(async (verifier, request) =>
          verifier.http.json(request.payload.response_uri, await completeResponse(verifier, request)),
        ),
        'a presentation and an error': answerWith(async (verifier, request) =>
          verifier.answer(request, await correctVpToken(verifier, request), { error: 'access_denied' }),
        ),
        'encrypted and in the clear at once': answerWith(async (verifier, request) => {
          const content = await completeResponse(verifier, requireEncrypted(request));
          return verifier.post(request, {
            response: await encryptResponse(request, content),
            vp_token: JSON.stringify(content.vp_token),
            state: content.state,
          });
        }),
        'the answer twice': answerWith(async (verifier, request) => {
          const response = await encryptResponse(requireEncrypted(request), await completeResponse(verifier, request));
          return verifier.post(request, [
            ['response', response],
            ['response', response],
          ]);
        }),
        'an answer as a query': answerWith(async (verifier, request) => {
          const query = new URLSearchParams({
            response: await encryptResponse(requireEncrypted(request), await completeResponse(verifier, request)),
          });
          return verifier.http.call(`${request.payload.response_uri}?${query}`, {
            method: 'POST',
            headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
            body: '',
          });
        }),
        'GET to the place for answers': answerWith((verifier, request) => verifier.http.call(request.payload.response_uri)),
        'five megabytes': async (verifier) => {
          const request = await verifier.ask();
          const answer = await verifier.post(request, { response: 'x'.repeat(5 * 1024 * 1024) });
          return answer.status === 0 ? held('closed') : verifier.mustFail(request, answer);
        },
      },
    ),
    {
      name: 'an error of somebody who does not know the request',
      section: 'OpenID4VP 1.0 section 8.5',
      why: 'a stranger must not end the request of a wallet',
      safe: REFUSED,
      async run(verifier) {
        const request = await verifier.ask();
        if (request.payload.state === undefined) throw new Skip('the request has no state');
        await verifier.post(request, { error: 'access_denied', state: 'guessed' });
        const answer = await verifier.answer(request, await correctVpToken(verifier, request));
        return answer.status < 300 ? held('the right answer still counts') : open(`the right answer: ${describe(answer)}`);
      },
    },
  ],
};
