import type { HeldCredentials } from './held-credentials.ts';
import { expectStatus, type HttpClient, json, pathOf, payloadOf, text, WrongAnswer } from './http-client.ts';
import { type Bound, encrypt } from './wallet-crypto.ts';
import { ASKED, type Asking, type Format } from './world.ts';

/** What the flows of one tenant share. */
export type Parts = {
  readonly http: HttpClient;
  readonly bearer: Readonly<Record<string, string>>;
  readonly held: Readonly<Record<Format, HeldCredentials>>;
};

/** What verifiers and wallets do with one presentation request, from its making to its result. */
export class Presentations {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Answers each query of the configuration with a credential of its own. */
  async verify({ requestId, queries }: Asking): Promise<void> {
    const { http, held: all } = this.#parts;
    const bearer = { ...this.#parts.bearer };
    const body = { response_type: 'uri', requestId };
    const offer = json('request', await http.postJson('/verifier/offer', body, bearer), 201);
    const uri = new URL(text('request', offer, 'uri'));
    const served = await http.get(pathOf(uri.searchParams.get('request_uri')));
    expectStatus('request object', served, 200);
    const request = payloadOf(served.text);
    const bound = boundTo(request);
    const vpToken = Object.fromEntries(
      queries.map(({ id, format }) => {
        const held = all[format].next();
        return [id, [held.present(bound)]];
      }),
    );
    const plaintext = JSON.stringify({ vp_token: vpToken, state: request['state'] });
    const response = { response: encrypt(plaintext, bound.encryptionKey) };
    expectStatus('response', await http.postForm(pathOf(bound.responseUri), response), 200);
    const session = text('request', offer, 'session');
    checkResult(json('poll', await http.get(`/session/${session}`, bearer), 200), queries);
  }
}

function boundTo(request: Readonly<Record<string, unknown>>): Bound {
  const metadata = request['client_metadata'] as { jwks?: { keys?: Record<string, string>[] } } | undefined;
  const { kid = '', x = '', y = '' } = metadata?.jwks?.keys?.[0] ?? {};
  return {
    nonce: text('request object', request, 'nonce'),
    clientId: text('request object', request, 'client_id'),
    responseUri: text('request object', request, 'response_uri'),
    encryptionKey: { kid, x, y },
  };
}

function checkResult(session: Readonly<Record<string, unknown>>, queries: Asking['queries']): void {
  if (session['status'] !== 'completed') throw new WrongAnswer('poll', `status ${session['status']}`);
  const credentials = (session['credentials'] ?? []) as readonly { id?: unknown; values?: unknown }[];
  const isThere = queries.every(({ id, format }) => {
    const values = JSON.stringify(credentials.find((one) => one.id === id)?.values ?? null);
    return ASKED[format].every((name) => values.includes(`"${name}"`));
  });
  if (!isThere) throw new WrongAnswer('poll', 'the session does not have the disclosed values');
}
