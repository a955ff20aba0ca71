import { type Fetch, send } from './http.ts';
import type { Schemas } from './operations.ts';
import { VidimusError } from './vidimus-error.ts';

export type TokenSource = {
  /** The current token; concurrent calls share it while it is valid. */
  token(): Promise<string>;
  /** Invalidates a rejected token. @returns true if another one can be obtained. */
  refused(token: string): boolean;
};

type Credentials = {
  readonly url: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly fetch: Fetch;
  readonly timeoutMs: number;
};

/** Margin before expiry, because a token that expires during a request is rejected. */
const EARLY_MS = 30_000;

type CachedToken = { readonly token: string; readonly until: number };

/** Obtains tokens by client credentials (RFC 6749 section 4.4), with one request for concurrent callers. */
export class ClientCredentialsToken implements TokenSource {
  readonly #credentials: Credentials;
  #cached: CachedToken | undefined;
  #fetching: Promise<CachedToken> | undefined;

  constructor(credentials: Credentials) {
    this.#credentials = credentials;
  }

  async token(): Promise<string> {
    if (this.#cached !== undefined && Date.now() < this.#cached.until) return this.#cached.token;
    this.#fetching ??= this.#fetch().finally(() => {
      this.#fetching = undefined;
    });
    this.#cached = await this.#fetching;
    return this.#cached.token;
  }

  refused(token: string): boolean {
    // Another call may have fetched a new token meanwhile.
    if (this.#cached?.token === token) this.#cached = undefined;
    return true;
  }

  /** Ignores the caller's signal, because aborting one call must not abort the login for the others. */
  async #fetch(): Promise<CachedToken> {
    const { url, clientId, clientSecret, fetch, timeoutMs } = this.#credentials;
    const body = { grant_type: 'client_credentials', client_id: clientId, client_secret: clientSecret };
    const began = Date.now();
    const init = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) };
    const { response, text } = await send({ fetch, address: `${url}/oauth2/token`, init, timeoutMs });
    const { access_token: token, expires_in: seconds } = read(text);
    if (typeof token !== 'string' || typeof seconds !== 'number') {
      throw new VidimusError('unexpected_answer', 'the response has no access token', { status: response.status });
    }
    // A short-lived token is used for most of its life.
    return { token, until: began + seconds * 1000 - Math.min(EARLY_MS, seconds * 200) };
  }
}

/** A token that the caller obtains elsewhere, such as from the provider in the setting `OIDC`. */
export class ExternalTokenSource implements TokenSource {
  readonly #give: () => string | Promise<string>;

  constructor(give: () => string | Promise<string>) {
    this.#give = give;
  }

  async token(): Promise<string> {
    return this.#give();
  }

  refused(): boolean {
    return false;
  }
}

function read(text: string): Partial<Schemas['AccessToken']> {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}
