import type { JsonObject } from '../../../domain/shared/json.ts';
import { type VaultCall, VaultClient } from './vault-client.ts';
import { VaultError } from './vault-error.ts';
import { isTaken, type Login, logIn, renew } from './vault-login.ts';
import type { VaultSettings } from './vault-settings.ts';

const DAY_MS = 86_400_000;
const SOON_MS = 1_000;
const RETRY_MS = 60_000;
/** For so long after a login that did not help, none is tried because a call was refused. */
const NO_USE_MS = 10_000;

/** Runs what nobody waits for, with the limits of all calls. */
export type Background = (work: (signal: AbortSignal) => Promise<void>) => Promise<void>;

type Current = Login & {
  /** In milliseconds of this process. */
  readonly endsAt: number;
  /** What the login gave at first, before it was renewed. */
  readonly grantedMs: number;
};

/**
 * Calls with a token. The first call logs in, and those that come meanwhile wait for the same login. The token is renewed
 * before it ends, in time also when nothing is called, since a token from the configuration would be lost otherwise.
 */
export class VaultSession {
  readonly #settings: VaultSettings;
  readonly #client: VaultClient;
  readonly #background: Background;
  #current: Current | undefined;
  #login: Promise<Current> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #noUseUntil = 0;
  #isClosed = false;

  constructor(settings: VaultSettings, background: Background) {
    this.#settings = settings;
    this.#client = new VaultClient(settings);
    this.#background = background;
  }

  /**
   * A call that is refused for its token is repeated once with a new one.
   * @throws VaultError, of status 403 when it is the call that is not allowed; the reason of the signal.
   */
  async call(call: Omit<VaultCall, 'token' | 'secrets'>): Promise<JsonObject> {
    const token = await this.#token(call.signal);
    try {
      return await this.#client.call({ ...call, token });
    } catch (error) {
      if (!isForbidden(error)) throw error;
      const other = await this.#replace(token, call.signal);
      if (other === undefined) throw error;
      return await this.#repeat({ ...call, token: other });
    }
  }

  /** Ends after the calls that are under way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#client.close();
  }

  async #repeat(call: VaultCall): Promise<JsonObject> {
    try {
      return await this.#client.call(call);
    } catch (error) {
      // Nothing is wrong with a token that is new, so no login helps. Each would leave another token in Vault.
      if (isForbidden(error)) this.#noUseUntil = performance.now() + NO_USE_MS;
      throw error;
    }
  }

  async #token(signal: AbortSignal): Promise<string> {
    const known = this.#current;
    if (known !== undefined && performance.now() < known.endsAt) return known.token;
    return (await this.#loggedIn(signal)).token;
  }

  /** @returns another token; undefined when nothing is wrong with the one that was refused. */
  async #replace(refused: string, signal: AbortSignal): Promise<string | undefined> {
    const known = this.#current;
    if (known !== undefined && known.token !== refused) return known.token;
    if (known !== undefined) {
      if (performance.now() < this.#noUseUntil) return undefined;
      if (await isTaken(this.#client, refused, signal)) return undefined;
      if (this.#current === known) this.#current = undefined;
    }
    return this.#token(signal);
  }

  #loggedIn(signal: AbortSignal): Promise<Current> {
    this.#login ??= this.#logIn().finally(() => {
      this.#login = undefined;
    });
    return within(signal, this.#login);
  }

  /** Of as long as any call: those that wait for it have different times left. */
  async #logIn(): Promise<Current> {
    const { timeoutSeconds, auth } = this.#settings;
    const signal = AbortSignal.timeout(timeoutSeconds * 1000);
    const login = await logIn(this.#client, auth, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
      throw new VaultError(`no answer to the login within ${timeoutSeconds} s`);
    });
    return this.#keep(login, login.ttlMs);
  }

  #keep(login: Login, grantedMs: number): Current {
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

  /** Tried again until the token has ended; then the next call logs in. */
  async #prolong(): Promise<void> {
    try {
      await this.#background((signal) => this.#renew(signal));
    } catch {
      const left = (this.#current?.endsAt ?? 0) - performance.now();
      if (left > 0) this.#renewIn(Math.min(left / 3, RETRY_MS));
    }
  }

  async #renew(signal: AbortSignal): Promise<void> {
    const known = this.#current;
    if (known === undefined) return;
    if (known.isRenewable && (await this.#renewed(known, signal))) return;
    await this.#loggedIn(signal);
  }

  /** @returns whether the token lives on for as long as at first. */
  async #renewed(known: Current, signal: AbortSignal): Promise<boolean> {
    try {
      const login = await renew(this.#client, known, signal);
      if (this.#current !== known) return true;
      // The end of its longest life is near. Nothing left is written as 0, like no end.
      if (login.ttlMs === Number.POSITIVE_INFINITY || login.ttlMs < known.grantedMs) return false;
      this.#keep(login, known.grantedMs);
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

/** Waits for something that goes on when one of those who wait gives up. */
function within<T>(signal: AbortSignal, awaited: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const giveUp = () => reject(signal.reason);
    if (signal.aborted) giveUp();
    signal.addEventListener('abort', giveUp, { once: true });
    awaited.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp));
  });
}
