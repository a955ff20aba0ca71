import { ClientCredentialsToken, ExternalTokenSource, type TokenSource } from './access-token.ts';
import { addressOf, nextPage } from './addresses.ts';
import { readEvents } from './event-stream.ts';
import { type Call, type Fetch, failureOf, open, send, type TextResponse } from './http.ts';
import type { Answer, Arguments, Entry, ListPath, Method, Operation, PathOf, Schemas } from './operations.ts';
import { VidimusError } from './vidimus-error.ts';
import { type Change, type Session, type WaitOptions, waitForSession } from './wait-for-session.ts';

export type VidimusClientOptions = {
  /** Base URL of the service, such as `https://id.acme.example`. */
  readonly url: string;
  /** Client id and secret of a client of the service. */
  readonly clientId?: string;
  readonly clientSecret?: string;
  /** Alternative to client id and secret: returns an access token whenever one is needed. */
  readonly accessToken?: () => string | Promise<string>;
  /** Timeout of a call in milliseconds; 30,000 by default. */
  readonly timeoutMs?: number;
  /** Replaces the global `fetch`: for a proxy, for custom certificates, for tests. */
  readonly fetch?: Fetch;
};

/** A response with its headers, such as `ETag`. */
export type Answered<T> = { readonly data: T; readonly status: number; readonly headers: Headers };

const DEFAULT_TIMEOUT_MS = 30_000;
/** The service sends the current status immediately, unless a proxy buffers it. */
const FIRST_EVENT_MS = 10_000;
/** The duration of three missing keep-alive comments. */
const SILENT_MS = 45_000;
/** Limit of pages per iteration, which stops endless pagination of a faulty server. */
const MAX_PAGES = 10_000;

/** A client for one tenant, or for the operator. Every operation is typed by the OpenAPI document. */
export class VidimusClient {
  readonly #url: string;
  readonly #fetch: Fetch;
  readonly #timeoutMs: number;
  readonly #tokens: TokenSource;

  constructor(options: VidimusClientOptions) {
    const { url, timeoutMs = DEFAULT_TIMEOUT_MS, fetch = globalThis.fetch.bind(globalThis) } = options;
    if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
      throw new TypeError('Set url to the http or https address of the service, such as https://issuer.example.');
    }
    const parsed = new URL(url);
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
   * Like `get`, `post` and the others, with the headers of the response.
   * @throws VidimusError for an error response or an unreachable service; the reason of `signal` when it was aborted.
   */
  async request<M extends Method, P extends PathOf<M>>(
    method: M,
    path: P,
    ...args: Arguments<Operation<M, P>>
  ): Promise<Answered<Answer<Operation<M, P>>>> {
    const options: UntypedOptions = args[0] ?? {};
    const apiResponse = await this.#call(method, addressOf(this.#url, path, options), options);
    return parseResponse(apiResponse);
  }

  /** Iterates over all entries of a list; pages are fetched on demand. */
  async *list<P extends ListPath>(path: P, ...args: Arguments<Operation<'get', P>>): AsyncGenerator<Entry<P>, void, undefined> {
    const options: UntypedOptions = args[0] ?? {};
    let address: string | undefined = addressOf(this.#url, path, options);
    for (let page = 0; address !== undefined && page < MAX_PAGES; page += 1) {
      const { data, headers }: Answered<Entry<P>[]> = parseResponse(await this.#call('get', address, options));
      yield* data;
      const nextQuery = nextPage(headers);
      // The service's own URL in the link may differ from the URL of this client.
      address = nextQuery === undefined ? undefined : addressOf(this.#url, path, { ...options, query: nextQuery });
    }
  }

  /**
   * Waits for the end of an offer or a request, and reads it. Follows the event stream, reconnects after an interruption, and polls without
   * a stream.
   * @throws VidimusError `timeout` when the session has not ended in time; `not_found` when it was deleted, and other errors.
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
    const options = { header, signal, timeoutMs: FIRST_EVENT_MS };
    const response = await this.#authorized((token) => open(this.#callOf('get', address, options, token)));
    try {
      if (response.body === null) return;
      for await (const { id: eventId, data } of readEvents(response.body, SILENT_MS)) {
        yield { eventId, ...(JSON.parse(data) as Schemas['SessionStatus']) };
      }
    } catch (error) {
      throw failureOf(error, { address, signal });
    }
  }

  #call(method: Method, address: string, options: UntypedOptions): Promise<TextResponse> {
    return this.#authorized((token) => send(this.#callOf(method, address, options, token)));
  }

  async #authorized<T>(call: (token: string) => Promise<T>): Promise<T> {
    const token = await this.#tokens.token();
    try {
      return await call(token);
    } catch (error) {
      // The token became invalid early, for example after a rotation of its secret; the request had no effect.
      if (!isTokenRefused(error) || !this.#tokens.refused(token)) throw error;
      return call(await this.#tokens.token());
    }
  }

  #callOf(method: Method, address: string, options: UntypedOptions, token: string): Call {
    const { body, header, signal, timeoutMs = this.#timeoutMs } = options;
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

/** Untyped options of an operation. */
type UntypedOptions = {
  readonly [K in 'path' | 'query' | 'header']?: Readonly<Record<string, unknown>> | undefined;
} & { readonly body?: unknown; readonly signal?: AbortSignal | undefined; readonly timeoutMs?: number | undefined };

function tokensOf(
  { clientId, clientSecret, accessToken }: VidimusClientOptions,
  way: { readonly url: string; readonly fetch: Fetch; readonly timeoutMs: number },
): TokenSource {
  if (accessToken !== undefined) return new ExternalTokenSource(accessToken);
  if (clientId === undefined || clientSecret === undefined) {
    throw new TypeError('set clientId and clientSecret, or accessToken');
  }
  return new ClientCredentialsToken({ ...way, clientId, clientSecret });
}

function isTokenRefused(error: unknown): boolean {
  return error instanceof VidimusError && error.code === 'unauthenticated';
}

function parseResponse<T>({ response, text }: TextResponse): Answered<T> {
  const { status, headers } = response;
  if (text === '') return { data: undefined as T, status, headers };
  if (!/^application\/(?:[\w.]+\+)?json\b/i.test(headers.get('content-type') ?? '')) {
    return { data: text as T, status, headers };
  }
  try {
    return { data: JSON.parse(text), status, headers };
  } catch (cause) {
    throw new VidimusError('unexpected_answer', 'the response is not JSON', { status, cause });
  }
}
