import type { Family } from '../core/case.ts';
import { asAdvice, table } from '../core/table.ts';
import { encryptResponse, isEncrypted, queryOf, type Verifier } from '../targets/verifier.ts';
import { answerWith, presentsCard, vpToken } from './presenting.ts';

const REFUSED = { status: [400, 404, 410, 413, 415] } as const;

/** A vp_token as text that no serializer would write. */
const rawToken = (make: (id: string, text: string) => string) =>
  answerWith(async (verifier, request) => {
    const text = make(JSON.stringify(queryOf(request).id), JSON.stringify(await verifier.card(request)));
    if (!isEncrypted(request)) return verifier.post(request, { vp_token: text, state: request.payload.state });
    const responseText = `{"state":${JSON.stringify(request.payload.state)},"vp_token":${text}}`;
    return verifier.post(request, { response: await encryptResponse(request, responseText) });
  });

export const vpTokens: Family<Verifier> = {
  id: 'vp-token',
  title: 'The shape of vp_token',
  control: presentsCard,
  cases: [
    ...table<Verifier>(
      { section: 'OpenID4VP 1.0 section 8.1', why: 'each presentation answers one query, as many as were asked for', safe: REFUSED },
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
        'another query alone': vpToken((_, text) => ({ other: [text] })),
        'a query that every object has': vpToken((_, text) => JSON.parse(`{"__proto__":[${JSON.stringify(text)}]}`)),
        'a presentation with a NUL': vpToken((id, text) => ({ [id]: [`${text}\0`] })),
        'a presentation of a megabyte of tildes': vpToken((id) => ({ [id]: ['~'.repeat(500_000)] })),
        'a thousand presentations': vpToken((id) => ({ [id]: Array(1000).fill('x') })),
      },
    ),
    ...table<Verifier>(
      { section: 'OpenID4VP 1.0 section 8.1', why: 'nobody asked for it, and nobody should keep it', safe: REFUSED },
      { 'a query that was not asked': vpToken((id, text) => ({ [id]: [text], other: [text] })) },
    ).map(asAdvice),
    ...table<Verifier>(
      { section: 'RFC 8259 section 4', why: 'what two readers read in two ways is refused', safe: REFUSED },
      {
        'the query twice': rawToken((id, text) => `{${id}:["other"],${id}:[${text}]}`),
        'ten thousand levels': rawToken((id) => `{${id}:${'['.repeat(10_000)}${']'.repeat(10_000)}}`),
      },
    ),
  ],
};
