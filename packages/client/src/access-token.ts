import { type Fetch, send } from './http.ts';
import type { Schemas } from './operations.ts';
import { VidimusError } from './vidimus-error.ts';

export type TokenSource = {
  /** The token of now; the same for everybody who asks while it is good. */
  token(): Promise<string>;
  /** It was refused. @returns whether another one can be had. */
  refused(token: string): boolean;
};

type Credentials = {
  readonly url: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly fetch: Fetch;
  readonly timeoutMs: number;
};

/** A token that ends while a request is on its way is refused. */
const EARLY_MS = 30_000;

type Held = { readonly token: string; readonly until: number };

/** Logs in with client credentials (RFC 6749 section 4.4), once for all who wait. */
export class ClientCredentialsToken implements TokenSource {
  readonly #credentials: Credentials;
  #held: Held | undefined;
  #fetching: Promise<Held> | undefined;

  constructor(credentials: Credentials) {
    this.#credentials = credentials;
  }

  async token(): Promise<string> {
    if (this.#held !== undefined && Date.now() < this.#held.until) return this.#held.token;
    this.#fetching ??= this.#fetch().finally(() => {
      this.#fetching = undefined;
    });
    this.#held = await this.#fetching;
    return this.#held.token;
  }

  refused(token: string): boolean {
    // Somebody else may have fetched another one meanwhile.
    if (this.#held?.token === token) this.#held = undefined;
    return true;
  }

  /** Without the caller's signal: one who leaves must not take the login away from the others. */
  async #fetch(): Promise<Held> {
    const { url, clientId, clientSecret, fetch, timeoutMs } = this.#credentials;
    const body = { grant_type: 'client_credentials', client_id: clientId, client_secret: clientSecret };
    const began = Date.now();
    const init = {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    };
    const { response, text } = await send({ fetch, address: `${url}/oauth2/token`, init, timeoutMs });
    const { access_token: token, expires_in: seconds } = read(text);
    if (typeof token !== 'string' || typeof seconds !== 'number') {
      throw new VidimusError('unexpected_answer', 'the answer has no access token', {
        status: response.status,
      });
    }
    // A short-lived token is used for most of its life.
    return { token, until: began + seconds * 1000 - Math.min(EARLY_MS, seconds * 200) };
  }
}

/** A token that the caller has from elsewhere, such as the provider that `OIDC` names. */
export class GivenToken implements TokenSource {
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
