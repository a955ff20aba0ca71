import { describe, type Family, held, open } from '../core/case.ts';
import { Skip } from '../core/skip.ts';
import { table } from '../core/table.ts';
import type { Asked } from '../targets/requests.ts';
import { encryptResponse, isEncrypted, queryOf, type Verifier } from '../targets/verifier.ts';
import { answered, presentsCard } from './presenting.ts';

const REFUSED = { status: [400, 404, 410, 413, 415] } as const;
const right = async (verifier: Verifier, asked: Asked) => ({
  [queryOf(asked).id]: [await verifier.card(asked)],
});
const whole = async (verifier: Verifier, asked: Asked) => ({
  vp_token: await right(verifier, asked),
  state: asked.payload.state,
});
const encrypted = (asked: Asked): Asked => {
  if (!isEncrypted(asked)) throw new Skip('answers to this verifier are not encrypted');
  return asked;
};

export const responses: Family<Verifier> = {
  id: 'responses',
  title: 'Answers of wallets: replay, state, form',
  control: presentsCard,
  cases: [
    ...table<Verifier>(
      {
        section: 'OpenID4VP 1.0 section 14.1',
        why: 'a presentation is for one request, once',
        safe: REFUSED,
      },
      {
        'an answer to another request': answered(async (verifier, asked) =>
          verifier.answer(asked, await right(verifier, await verifier.ask())),
        ),
        'the whole answer to another request, letter by letter': answered(async (verifier, asked) => {
          const other = await verifier.ask();
          if (!isEncrypted(other)) return verifier.plain(asked, await whole(verifier, other));
          return verifier.post(asked, {
            response: await encryptResponse(other, await whole(verifier, other)),
          });
        }),
        'another state': answered(async (verifier, asked) => {
          if (asked.payload.state === undefined) throw new Skip('the request has no state');
          return verifier.answer(asked, await right(verifier, asked), { state: 'another' });
        }),
        'no state': answered(async (verifier, asked) => {
          if (asked.payload.state === undefined) throw new Skip('the request has no state');
          return verifier.answer(asked, await right(verifier, asked), { state: undefined });
        }),
        'the state of another request': answered(async (verifier, asked) => {
          const { state } = (await verifier.ask()).payload;
          if (state === undefined) throw new Skip('the request has no state');
          return verifier.answer(asked, await right(verifier, asked), { state });
        }),
      },
    ),
    {
      name: 'an answer that came before',
      section: 'OpenID4VP 1.0 section 14.1',
      why: 'who saw an answer must not give it again',
      safe: REFUSED,
      async run(verifier) {
        const asked = await verifier.ask();
        const content = await right(verifier, asked);
        const first = await verifier.answer(asked, content);
        const again = await verifier.answer(asked, content);
        if (first.status >= 300) return { outcome: 'unclear', seen: `the first: ${describe(first)}` };
        return again.status >= 400 && again.status < 500 ? held(describe(again)) : open(`the second: ${describe(again)}`);
      },
    },
    ...table<Verifier>(
      { section: 'OpenID4VP 1.0 section 8.2', why: 'an answer is a form of one kind', safe: REFUSED },
      {
        'an empty form': answered((verifier, asked) => verifier.post(asked, {})),
        'JSON instead of a form': answered(async (verifier, asked) =>
          verifier.http.json(asked.payload.response_uri, await whole(verifier, asked)),
        ),
        'a presentation and an error': answered(async (verifier, asked) =>
          verifier.answer(asked, await right(verifier, asked), { error: 'access_denied' }),
        ),
        'encrypted and in the clear at once': answered(async (verifier, asked) => {
          const content = await whole(verifier, encrypted(asked));
          return verifier.post(asked, {
            response: await encryptResponse(asked, content),
            vp_token: JSON.stringify(content.vp_token),
            state: content.state,
          });
        }),
        'the answer twice': answered(async (verifier, asked) => {
          const response = await encryptResponse(encrypted(asked), await whole(verifier, asked));
          return verifier.post(asked, [
            ['response', response],
            ['response', response],
          ]);
        }),
        'an answer as a query': answered(async (verifier, asked) => {
          const query = new URLSearchParams({
            response: await encryptResponse(encrypted(asked), await whole(verifier, asked)),
          });
          return verifier.http.call(`${asked.payload.response_uri}?${query}`, {
            method: 'POST',
            headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
            body: '',
          });
        }),
        'GET to the place for answers': answered((verifier, asked) => verifier.http.call(asked.payload.response_uri)),
        'five megabytes': async (verifier) => {
          const asked = await verifier.ask();
          const answer = await verifier.post(asked, { response: 'x'.repeat(5 * 1024 * 1024) });
          return answer.status === 0 ? held('closed') : verifier.mustFail(asked, answer);
        },
      },
    ),
    {
      name: 'an error of somebody who does not know the request',
      section: 'OpenID4VP 1.0 section 8.5',
      why: 'a stranger must not end the request of a wallet',
      safe: REFUSED,
      async run(verifier) {
        const asked = await verifier.ask();
        if (asked.payload.state === undefined) throw new Skip('the request has no state');
        await verifier.post(asked, { error: 'access_denied', state: 'guessed' });
        const answer = await verifier.answer(asked, await right(verifier, asked));
        return answer.status < 300 ? held('the right answer still counts') : open(`the right answer: ${describe(answer)}`);
      },
    },
  ],
};
