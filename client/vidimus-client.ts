import { ClientCredentialsToken, GivenToken, type TokenSource } from './access-token.ts';
import { addressOf, nextPage } from './addresses.ts';
import { type Fetch, type Got, send } from './http.ts';
import type { Answer, Arguments, Entry, ListPath, Method, Operation, PathOf } from './operations.ts';
import { VidimusError } from './vidimus-error.ts';

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
    ...[options]: Arguments<Operation<M, P>>
  ): Promise<Answered<Answer<Operation<M, P>>>> {
    const given: Given = options ?? {};
    const got = await this.#call(method, addressOf(this.#url, path, given), given);
    return answered(got);
  }

  /** All entries of a list, page by page, as they are asked for. */
  async *list<P extends ListPath>(
    path: P,
    ...[options]: Arguments<Operation<'get', P>>
  ): AsyncGenerator<Entry<P>, void, undefined> {
    const given: Given = options ?? {};
    let address: string | undefined = addressOf(this.#url, path, given);
    for (let page = 0; address !== undefined && page < MAX_PAGES; page += 1) {
      const { data, headers }: Answered<Entry<P>[]> = answered(await this.#call('get', address, given));
      yield* data;
      const next = nextPage(headers);
      // The address that the service has for itself may be another than the one that it is called by here.
      address = next === undefined ? undefined : addressOf(this.#url, path, { ...given, query: next });
    }
  }

  async #call(method: Method, address: string, given: Given): Promise<Got> {
    const token = await this.#tokens.token();
    try {
      return await this.#send(method, address, given, token);
    } catch (error) {
      // It ended early, as when its secret was rotated; nothing was done yet.
      if (!isTokenRefused(error) || !this.#tokens.refused(token)) throw error;
      return this.#send(method, address, given, await this.#tokens.token());
    }
  }

  #send(method: Method, address: string, given: Given, token: string): Promise<Got> {
    const { body, header, signal, timeoutMs = this.#timeoutMs } = given;
    const headers = new Headers({ Accept: 'application/json', Authorization: `Bearer ${token}` });
    for (const [name, value] of Object.entries(header ?? {})) {
      if (value !== undefined) headers.set(name, String(value));
    }
    if (body !== undefined) headers.set('Content-Type', 'application/json');
    const content = body === undefined ? {} : { body: JSON.stringify(body) };
    const init = { method: method.toUpperCase(), headers, ...content };
    return send({ fetch: this.#fetch, address, init, signal, timeoutMs });
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
