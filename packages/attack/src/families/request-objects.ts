import { type CaseResult, describe, type Family, held, open } from '../core/case.ts';
import type { Fields, Json } from '../core/http.ts';
import { headerOf, payloadOf } from '../core/jwt.ts';
import { asAdvice, table } from '../core/table.ts';
import type { FetchedRequest } from '../targets/requests.ts';
import { queryOf, type Verifier } from '../targets/verifier.ts';
import { presentsCard } from './presenting.ts';

const callSibling = (segment: string) => async (verifier: Verifier) => {
  const { url } = await verifier.ask();
  return verifier.http.call(url.slice(0, url.lastIndexOf('/') + 1) + segment);
};
const postFields = (fields: Fields) => async (verifier: Verifier) => verifier.http.form((await verifier.ask()).url, fields);
const checkRequest =
  (fault: (request: FetchedRequest) => string | undefined) =>
  async (verifier: Verifier): Promise<CaseResult> => {
    const problem = fault(await verifier.ask());
    return problem === undefined ? held('as it should be') : open(problem);
  };
const FORGED: Json = { alg: ['none', 'HS256'] };

export const requestObjects: Family<Verifier> = {
  id: 'request-objects',
  title: 'Presentation requests and how they are fetched',
  control: presentsCard,
  cases: [
    ...table<Verifier>(
      { section: 'OpenID4VP 1.0 section 5', why: 'a wallet has to know who asks, and that it is for now', safe: { status: [200] } },
      {
        'a request that nobody signed': checkRequest(({ header }) => (FORGED.alg.includes(header.alg) ? String(header.alg) : undefined)),
        'a request of another type': checkRequest(({ header }) => (header.typ === 'oauth-authz-req+jwt' ? undefined : String(header.typ))),
        'a client in the link that is not the one in the request': checkRequest(({ clientId, payload }) =>
          payload.client_id === clientId ? undefined : String(payload.client_id),
        ),
        'an answer to another place than the request came from, unencrypted': checkRequest(({ payload }) =>
          String(payload.response_uri).startsWith('http') ? undefined : String(payload.response_uri),
        ),
        'a nonce of few characters': checkRequest(({ payload }) =>
          String(payload.nonce).length >= 22 ? undefined : `${String(payload.nonce).length} characters`,
        ),
        'a private key among those for answers': checkRequest(({ payload }) =>
          (payload.client_metadata?.jwks?.keys ?? []).some((key: Json) => 'd' in key) ? 'a private key' : undefined,
        ),
        'one nonce in two requests': async (verifier) => {
          const [firstRequest, secondRequest] = [await verifier.ask(), await verifier.ask()];
          return firstRequest.payload.nonce === secondRequest.payload.nonce ? open('the same nonce twice') : held('two nonces');
        },
        'one key for the answers to two requests': async (verifier) => {
          const [firstRequest, secondRequest] = [await verifier.ask(), await verifier.ask()].map(({ payload }) =>
            JSON.stringify(payload.client_metadata?.jwks?.keys?.[0]),
          );
          return firstRequest !== undefined && firstRequest === secondRequest ? open('the same key twice') : held('two keys, or none');
        },
        'the address of the request as the address of the answer': checkRequest(({ url, payload }) =>
          payload.response_uri === url ? 'one address for both' : undefined,
        ),
      },
    ),
    ...table<Verifier>(
      { section: 'OpenID4VP 1.0 section 5.10', why: 'a request is found by its own address alone', safe: { status: [400, 404, 410] } },
      {
        'a request that was guessed': callSibling('guessed'),
        'a request with a NUL in its name': callSibling('a%00b'),
        'a request with a very long name': callSibling('x'.repeat(3000)),
        'a request by a pattern': callSibling('%25'),
      },
    ),
    ...table<Verifier>(
      {
        section: 'OpenID4VP 1.0 section 5.10.1',
        why: 'what a wallet says of itself has a form',
        safe: { status: [400, 404, 405, 413, 415] },
      },
      {
        'a wallet_nonce of a hundred thousand characters': postFields({ wallet_nonce: 'x'.repeat(100_000) }),
        'a wallet_nonce with control characters': postFields({ wallet_nonce: 'a\u0007b\n' }),
        'wallet_metadata that is no JSON': postFields({ wallet_metadata: '{' }),
        'wallet_metadata that is a list': postFields({ wallet_metadata: '[]' }),
        'a wallet without the format that is asked for': postFields({ wallet_metadata: '{"vp_formats_supported":{"unknown":{}}}' }),
        'wallet_nonce twice': postFields([
          ['wallet_nonce', 'a'],
          ['wallet_nonce', 'b'],
        ]),
        'a body of JSON': async (verifier) => verifier.http.json((await verifier.ask()).url, { wallet_nonce: 'x' }),
        'PUT of a request': async (verifier) => verifier.http.call((await verifier.ask()).url, { method: 'PUT' }),
        'DELETE of a request': async (verifier) => verifier.http.call((await verifier.ask()).url, { method: 'DELETE' }),
      },
    ).map(asAdvice),
    {
      name: 'a wallet_nonce that the request does not repeat',
      section: 'OpenID4VP 1.0 section 5.10.1',
      why: 'the wallet knows by it that the request was not stored by somebody',
      safe: { status: [200] },
      async run(verifier) {
        const answer = await verifier.http.form((await verifier.ask()).url, { wallet_nonce: 'a-nonce-of-the-wallet' });
        if (answer.status !== 200) return held(describe(answer));
        return payloadOf(answer.text).wallet_nonce === 'a-nonce-of-the-wallet' && headerOf(answer.text).alg !== 'none'
          ? held('repeated')
          : open('not repeated');
      },
    },
    {
      name: 'a request that is fetched after it was answered',
      section: 'OpenID4VP 1.0 section 14.1',
      why: 'one request has one answer',
      safe: { status: [400, 404, 409, 410] },
      async run(verifier) {
        const request = await verifier.ask();
        await verifier.answer(request, { [queryOf(request).id]: [await verifier.card(request)] });
        return verifier.http.call(request.url);
      },
    },
  ],
};
