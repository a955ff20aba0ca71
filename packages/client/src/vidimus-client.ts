import { ClientCredentialsToken, GivenToken, type TokenSource } from './access-token.ts';
import { addressOf, nextPage } from './addresses.ts';
import { readEvents } from './event-stream.ts';
import { type Call, type Fetch, failureOf, type Got, open, send } from './http.ts';
import type { Answer, Arguments, Entry, ListPath, Method, Operation, PathOf, Schemas } from './operations.ts';
import { VidimusError } from './vidimus-error.ts';
import { type Change, type Session, type WaitOptions, waitForSession } from './wait-for-session.ts';

export type VidimusClientOptions = {
  /** Where the service is, such as `https://id.acme.example`. */
  readonly url: string;
  /** A client of the service, which logs in with its secret. */
  readonly clientId?: string;
  readonly clientSecret?: string;
  /** In the place of both: gives an access token whenever one is needed. */
  readonly accessToken?: () => string | Promise<string>;
  /** Milliseconds until a call is given up; 30,000 unless stated. */
  readonly timeoutMs?: number;
  /** In the place of the global `fetch`: for a proxy, for certificates of your own, for tests. */
  readonly fetch?: Fetch;
};

/** An answer with what stands beside its body, such as `ETag`. */
export type Answered<T> = { readonly data: T; readonly status: number; readonly headers: Headers };

const DEFAULT_TIMEOUT_MS = 30_000;
/** The status of now comes at once, unless something on the way holds it back. */
const FIRST_EVENT_MS = 10_000;
/** Three comments that keep it alive did not come. */
const SILENT_MS = 45_000;
/** Pages that one iteration follows: a server that always names a next one must not keep anybody for ever. */
const MAX_PAGES = 10_000;

/** A client of one tenant, or of the operator. Every operation is typed by the OpenAPI document. */
export class VidimusClient {
  readonly #url: string;
  readonly #fetch: Fetch;
  readonly #timeoutMs: number;
  readonly #tokens: TokenSource;

  constructor(options: VidimusClientOptions) {
    const { url, timeoutMs = DEFAULT_TIMEOUT_MS, fetch = globalThis.fetch.bind(globalThis) } = options;
    const parsed = new URL(url);
    if (!/^https?:$/.test(parsed.protocol)) throw new TypeError('url begins with https: or http:');
    this.#url = `${parsed.origin}${parsed.pathname.replace(/\/+$/, '')}`;
    this.#timeoutMs = timeoutMs;
    this.#fetch = fetch;
    this.#tokens = tokensOf(options, { url: this.#url, fetch, timeoutMs });
  }

  async get<P extends PathOf<'get'>>(path: P, ...args: Arguments<Operation<'get', P>>) {
    return (await this.request('get', path, ...args)).data;
  }

  async post<P extends PathOf<'post'>>(path: P, ...args: Arguments<Operation<'post', P>>) {
    return (await this.request('post', path, ...args)).data;
  }

  async put<P extends PathOf<'put'>>(path: P, ...args: Arguments<Operation<'put', P>>) {
    return (await this.request('put', path, ...args)).data;
  }

  async patch<P extends PathOf<'patch'>>(path: P, ...args: Arguments<Operation<'patch', P>>) {
    return (await this.request('patch', path, ...args)).data;
  }

  async delete<P extends PathOf<'delete'>>(path: P, ...args: Arguments<Operation<'delete', P>>) {
    return (await this.request('delete', path, ...args)).data;
  }

  /**
   * As `get`, `post` and the others, with the headers of the answer.
   * @throws VidimusError when the service refuses, or cannot be reached; what `signal` says when it was aborted.
   */
  async request<M extends Method, P extends PathOf<M>>(
    method: M,
    path: P,
    ...rest: Arguments<Operation<M, P>>
  ): Promise<Answered<Answer<Operation<M, P>>>> {
    const given: Given = rest[0] ?? {};
    const got = await this.#call(method, addressOf(this.#url, path, given), given);
    return answered(got);
  }

  /** All entries of a list, page by page, as they are asked for. */
  async *list<P extends ListPath>(path: P, ...rest: Arguments<Operation<'get', P>>): AsyncGenerator<Entry<P>, void, undefined> {
    const given: Given = rest[0] ?? {};
    let address: string | undefined = addressOf(this.#url, path, given);
    for (let page = 0; address !== undefined && page < MAX_PAGES; page += 1) {
      const { data, headers }: Answered<Entry<P>[]> = answered(await this.#call('get', address, given));
      yield* data;
      const next = nextPage(headers);
      // The address that the service has for itself may be another than the one that it is called by here.
      address = next === undefined ? undefined : addressOf(this.#url, path, { ...given, query: next });
    }
  }

  /**
   * Waits for the end of an offer or a request, and reads it. Follows the stream of events, comes back when that breaks off,
   * and reads from time to time where there is none.
   * @throws VidimusError `timeout` when it has not ended in time; `not_found` when it is gone, and other refusals.
   */
  waitForSession(id: string, options: WaitOptions = {}): Promise<Session> {
    const path = { id };
    return waitForSession(
      {
        read: (signal) => this.get('/session/{id}', { path, signal }),
        follow: (lastEventId, signal) => this.#follow(id, lastEventId, signal),
      },
      options,
    );
  }

  async *#follow(id: string, lastEventId: string | undefined, signal: AbortSignal): AsyncGenerator<Change> {
    const address = addressOf(this.#url, '/session/{id}/events', { path: { id } });
    const header = { Accept: 'text/event-stream', 'Last-Event-ID': lastEventId };
    const given = { header, signal, timeoutMs: FIRST_EVENT_MS };
    const response = await this.#authorized((token) => open(this.#callOf('get', address, given, token)));
    try {
      if (response.body === null) return;
      for await (const { id: eventId, data } of readEvents(response.body, SILENT_MS)) {
        yield { eventId, ...(JSON.parse(data) as Schemas['SessionStatus']) };
      }
    } catch (error) {
      throw failureOf(error, { address, signal });
    }
  }

  #call(method: Method, address: string, given: Given): Promise<Got> {
    return this.#authorized((token) => send(this.#callOf(method, address, given, token)));
  }

  async #authorized<T>(call: (token: string) => Promise<T>): Promise<T> {
    const token = await this.#tokens.token();
    try {
      return await call(token);
    } catch (error) {
      // It ended early, as when its secret was rotated; nothing was done yet.
      if (!isTokenRefused(error) || !this.#tokens.refused(token)) throw error;
      return call(await this.#tokens.token());
    }
  }

  #callOf(method: Method, address: string, given: Given, token: string): Call {
    const { body, header, signal, timeoutMs = this.#timeoutMs } = given;
    const headers = new Headers({ Accept: 'application/json', Authorization: `Bearer ${token}` });
    for (const [name, value] of Object.entries(header ?? {})) {
      if (value !== undefined) headers.set(name, String(value));
    }
    if (body !== undefined) headers.set('Content-Type', 'application/json');
    const content = body === undefined ? {} : { body: JSON.stringify(body) };
    const init = { method: method.toUpperCase(), headers, ...content };
    return { fetch: this.#fetch, address, init, signal, timeoutMs };
  }
}

/** What every operation may be given, once its types have done their work. */
type Given = {
  readonly [K in 'path' | 'query' | 'header']?: Readonly<Record<string, unknown>> | undefined;
} & {
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
};

function tokensOf(
  { clientId, clientSecret, accessToken }: VidimusClientOptions,
  way: { readonly url: string; readonly fetch: Fetch; readonly timeoutMs: number },
): TokenSource {
  if (accessToken !== undefined) return new GivenToken(accessToken);
  if (clientId === undefined || clientSecret === undefined) {
    throw new TypeError('give clientId and clientSecret, or accessToken');
  }
  return new ClientCredentialsToken({ ...way, clientId, clientSecret });
}

function isTokenRefused(error: unknown): boolean {
  return error instanceof VidimusError && error.code === 'unauthenticated';
}

function answered<T>({ response, text }: Got): Answered<T> {
  const { status, headers } = response;
  if (text === '') return { data: undefined as T, status, headers };
  if (!/^application\/(?:[\w.]+\+)?json\b/i.test(headers.get('content-type') ?? '')) {
    return { data: text as T, status, headers };
  }
  try {
    return { data: JSON.parse(text), status, headers };
  } catch (cause) {
    throw new VidimusError('unexpected_answer', 'the answer is no JSON', { status, cause });
  }
}
