import type { JsonObject } from '../../../domain/shared/json.ts';
import { type VaultCall, VaultClient } from './vault-client.ts';
import { VaultError } from './vault-error.ts';
import { isAcceptedToken, type Login, logIn, renew } from './vault-login.ts';
import type { VaultSettings } from './vault-settings.ts';

const DAY_MS = 86_400_000;
const SOON_MS = 1_000;
const RETRY_MS = 60_000;
/** After a login that did not help, rejected calls cause no other login for this long. */
const NO_USE_MS = 10_000;

/** Runs background work within the limits of all calls. */
export type Background = (work: (signal: AbortSignal) => Promise<void>) => Promise<void>;

type CurrentLogin = Login & {
  /** Monotonic time in milliseconds. */
  readonly endsAt: number;
  /** Lifetime at the login, before it was renewed. */
  readonly grantedMs: number;
};

/**
 * Calls with a token. The first call logs in, and concurrent calls wait for the same login. The token is renewed before it expires, also
 * without calls, because a token from the configuration would be lost otherwise.
 */
export class VaultSession {
  readonly #settings: VaultSettings;
  readonly #client: VaultClient;
  readonly #background: Background;
  #current: CurrentLogin | undefined;
  #login: Promise<CurrentLogin> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #noUseUntil = 0;
  #isClosed = false;

  constructor(settings: VaultSettings, background: Background) {
    this.#settings = settings;
    this.#client = new VaultClient(settings);
    this.#background = background;
  }

  /**
   * Repeats a call once with a new token if its token is rejected.
   * @throws VaultError, with status 403 if the call itself is not allowed; the reason of the signal.
   */
  async call(call: Omit<VaultCall, 'token' | 'secrets'>): Promise<JsonObject> {
    const token = await this.#token(call.signal);
    try {
      return await this.#client.call({ ...call, token });
    } catch (error) {
      if (!isForbidden(error)) throw error;
      const newToken = await this.#replace(token, call.signal);
      if (newToken === undefined) throw error;
      return await this.#repeat({ ...call, token: newToken });
    }
  }

  /** Resolves after the running calls. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#client.close();
  }

  async #repeat(call: VaultCall): Promise<JsonObject> {
    try {
      return await this.#client.call(call);
    } catch (error) {
      // A new token is valid, so another login would not help. Each login leaves another token in Vault.
      if (isForbidden(error)) this.#noUseUntil = performance.now() + NO_USE_MS;
      throw error;
    }
  }

  async #token(signal: AbortSignal): Promise<string> {
    const current = this.#current;
    if (current !== undefined && performance.now() < current.endsAt) return current.token;
    return (await this.#loggedIn(signal)).token;
  }

  /** @returns another token; undefined if the rejected one is valid. */
  async #replace(rejectedToken: string, signal: AbortSignal): Promise<string | undefined> {
    const current = this.#current;
    if (current !== undefined && current.token !== rejectedToken) return current.token;
    if (current !== undefined) {
      if (performance.now() < this.#noUseUntil) return undefined;
      if (await isAcceptedToken(this.#client, rejectedToken, signal)) return undefined;
      if (this.#current === current) this.#current = undefined;
    }
    return this.#token(signal);
  }

  #loggedIn(signal: AbortSignal): Promise<CurrentLogin> {
    this.#login ??= this.#logIn().finally(() => {
      this.#login = undefined;
    });
    return within(signal, this.#login);
  }

  /** The login has its own timeout, because the calls that wait for it have different deadlines. */
  async #logIn(): Promise<CurrentLogin> {
    const { timeoutSeconds, auth } = this.#settings;
    const signal = AbortSignal.timeout(timeoutSeconds * 1000);
    const login = await logIn(this.#client, auth, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
      throw new VaultError(`no answer to the login within ${timeoutSeconds} s`);
    });
    return this.#keep(login, login.ttlMs);
  }

  #keep(login: Login, grantedMs: number): CurrentLogin {
    const current = { ...login, grantedMs, endsAt: performance.now() + login.ttlMs };
    this.#current = current;
    this.#renewIn(Math.min((login.ttlMs * 2) / 3, DAY_MS));
    return current;
  }

  #renewIn(milliseconds: number): void {
    clearTimeout(this.#timer);
    if (this.#isClosed || this.#current?.endsAt === Number.POSITIVE_INFINITY) return;
    this.#timer = setTimeout(() => void this.#prolong(), Math.max(milliseconds, SOON_MS));
    this.#timer.unref();
  }

  /** Retries until the token has expired; then the next call logs in. */
  async #prolong(): Promise<void> {
    try {
      await this.#background((signal) => this.#renew(signal));
    } catch {
      const remainingMs = (this.#current?.endsAt ?? 0) - performance.now();
      if (remainingMs > 0) this.#renewIn(Math.min(remainingMs / 3, RETRY_MS));
    }
  }

  async #renew(signal: AbortSignal): Promise<void> {
    const current = this.#current;
    if (current === undefined) return;
    if (current.isRenewable && (await this.#renewed(current, signal))) return;
    await this.#loggedIn(signal);
  }

  /** @returns true if the token has its full lifetime again. */
  async #renewed(current: CurrentLogin, signal: AbortSignal): Promise<boolean> {
    try {
      const login = await renew(this.#client, current, signal);
      if (this.#current !== current) return true;
      // The end of the maximum lifetime is near. A remaining lifetime of 0 looks like no expiry.
      if (login.ttlMs === Number.POSITIVE_INFINITY || login.ttlMs < current.grantedMs) return false;
      this.#keep(login, current.grantedMs);
      return true;
    } catch (error) {
      if (error instanceof VaultError && error.status !== undefined && error.status < 500) return false;
      throw error;
    }
  }
}

function isForbidden(error: unknown): boolean {
  return error instanceof VaultError && error.status === 403;
}

/** Waits for a shared promise, which continues when one of the waiting calls gives up. */
function within<T>(signal: AbortSignal, awaited: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const giveUp = () => reject(signal.reason);
    if (signal.aborted) giveUp();
    signal.addEventListener('abort', giveUp, { once: true });
    awaited.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp));
  });
}
