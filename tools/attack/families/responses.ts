import { describe, type Family, held, open, Skip } from '../core/case.ts';
import { newKey } from '../core/jwt.ts';
import { table } from '../core/table.ts';
import type { Asked } from '../targets/requests.ts';
import { encryptResponse, isEncrypted, queryOf, type Verifier } from '../targets/verifier.ts';
import { answered, presentsCard, vpToken } from './presenting.ts';

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
        return again.status >= 400 && again.status < 500
          ? held(describe(again))
          : open(`the second: ${describe(again)}`);
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
        'GET to the place for answers': answered((verifier, asked) =>
          verifier.http.call(asked.payload.response_uri),
        ),
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
        return answer.status < 300
          ? held('the right answer still counts')
          : open(`the right answer: ${describe(answer)}`);
      },
    },
  ],
};

const jwe = (make: (asked: Asked, content: object) => Promise<string>) =>
  answered(async (verifier, asked) =>
    verifier.post(asked, { response: await make(encrypted(asked), await whole(verifier, asked)) }),
  );
const parts = (change: (parts: string[]) => readonly string[]) =>
  jwe(async (asked, content) => change((await encryptResponse(asked, content)).split('.')).join('.'));
const flipped = (part = '') => {
  const bytes = Buffer.from(part, 'base64url');
  bytes[0] = (bytes[0] ?? 0) ^ 1;
  return bytes.toString('base64url');
};

export const responseEncryption: Family<Verifier> = {
  id: 'response-encryption',
  title: 'Encrypted answers of wallets',
  async control(verifier) {
    encrypted(await verifier.ask());
    await presentsCard(verifier);
  },
  cases: table<Verifier>(
    {
      section: 'OpenID4VP 1.0 section 8.3',
      why: 'an answer is encrypted to the key of this request, as was asked',
      safe: REFUSED,
    },
    {
      'in the clear': answered(async (verifier, asked) =>
        verifier.plain(encrypted(asked), await whole(verifier, asked)),
      ),
      'to the key of another request': answered(async (verifier, asked) => {
        const response = await encryptResponse(await verifier.ask(), await whole(verifier, encrypted(asked)));
        return verifier.post(asked, { response });
      }),
      'to another key under the right name': jwe((asked, content) =>
        encryptResponse(asked, content, {
          jwk: { ...newKey().jwk, kid: asked.payload.client_metadata.jwks.keys[0].kid },
        }),
      ),
      'to a key that is unknown': jwe((asked, content) =>
        encryptResponse(asked, content, { header: { kid: 'unknown' } }),
      ),
      'by an enc that was not asked for': jwe((asked, content) =>
        encryptResponse(asked, content, { header: { enc: 'A128CBC-HS256' } }),
      ),
      'with key wrapping': jwe((asked, content) =>
        encryptResponse(asked, content, { header: { alg: 'ECDH-ES+A128KW' } }),
      ),
      'with a changed ciphertext': parts(([a = '', b = '', c = '', d, e = '']) => [a, b, c, flipped(d), e]),
      'with a changed tag': parts(([a = '', b = '', c = '', d = '', e]) => [a, b, c, d, flipped(e)]),
      'with an extension that nobody knows': parts(([a = '', ...rest]) => [
        Buffer.from(
          JSON.stringify({ ...JSON.parse(Buffer.from(a, 'base64url').toString()), crit: ['x'], x: 1 }),
        ).toString('base64url'),
        ...rest,
      ]),
      'only signed, by nobody': jwe(
        async (_, content) =>
          `eyJhbGciOiJub25lIn0.${Buffer.from(JSON.stringify(content)).toString('base64url')}.`,
      ),
      'with text inside that is no JSON': jwe((asked) => encryptResponse(asked, 'nonsense')),
      'with a list inside': jwe((asked, content) => encryptResponse(asked, [content])),
      'text that is no JWE': jwe(async () => 'a.b.c.d.e'),
    },
  ),
};

export const vpTokens: Family<Verifier> = {
  id: 'vp-token',
  title: 'The shape of vp_token',
  control: presentsCard,
  cases: [
    ...table<Verifier>(
      {
        section: 'OpenID4VP 1.0 section 8.1',
        why: 'each presentation answers one query, as many as were asked for',
        safe: REFUSED,
      },
      {
        'a text': vpToken((_, text) => text),
        'a list': vpToken((_, text) => [text]),
        null: vpToken(() => null),
        'an empty object': vpToken(() => ({})),
        'a text for the query': vpToken((id, text) => ({ [id]: text })),
        'an empty list for the query': vpToken((id) => ({ [id]: [] })),
        'an object as presentation': vpToken((id, text) => ({ [id]: [{ text }] })),
        'a number as presentation': vpToken((id) => ({ [id]: [1] })),
        'an empty text as presentation': vpToken((id) => ({ [id]: [''] })),
        'one presentation twice': vpToken((id, text) => ({ [id]: [text, text] })),
        'a query that was not asked': vpToken((id, text) => ({ [id]: [text], other: [text] })),
        'another query alone': vpToken((_, text) => ({ other: [text] })),
        'a query that every object has': vpToken((_, text) =>
          JSON.parse(`{"__proto__":[${JSON.stringify(text)}]}`),
        ),
        'a presentation with a NUL': vpToken((id, text) => ({ [id]: [`${text}\0`] })),
        'a presentation of a megabyte of tildes': vpToken((id) => ({ [id]: ['~'.repeat(500_000)] })),
        'a thousand presentations': vpToken((id) => ({ [id]: Array(1000).fill('x') })),
      },
    ),
    ...table<Verifier>(
      { section: 'RFC 8259 section 4', why: 'what two readers read in two ways is refused', safe: REFUSED },
      {
        'the query twice': answered(async (verifier, asked) => {
          const id = JSON.stringify(queryOf(asked).id);
          const text = `{${id}:["other"],${id}:[${JSON.stringify(await verifier.card(asked))}]}`;
          if (!isEncrypted(asked))
            return verifier.post(asked, { vp_token: text, state: asked.payload.state });
          return verifier.post(asked, {
            response: await encryptResponse(
              asked,
              `{"state":${JSON.stringify(asked.payload.state)},"vp_token":${text}}`,
            ),
          });
        }),
        'ten thousand levels': vpToken((id) => ({
          [id]: JSON.parse(`${'['.repeat(5000)}${']'.repeat(5000)}`),
        })),
      },
    ),
  ],
};
