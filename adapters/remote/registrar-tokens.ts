import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../application/ports/clock.ts';
import type { RegistrarAccount } from '../../application/ports/registrar.ts';
import type { Remote } from '../../application/ports/remote.ts';
import { boundedBytes } from '../../application/tenant-cache/cache-memory.ts';
import { SingleFlight } from '../../application/tenant-cache/single-flight.ts';
import { logIn, type RegistrarToken } from './registrar-login.ts';

const MAX_TOKEN_BYTES = 8 * 1024 * 1024;

/** Tokens of registrars by tenant and settings: changed settings cause another login. */
export class RegistrarTokens {
  readonly #remote: Remote;
  readonly #clock: Clock;
  readonly #tokens = new LRUCache<string, RegistrarToken & { readonly since: number }>(boundedBytes(MAX_TOKEN_BYTES));
  readonly #logins = new SingleFlight<RegistrarToken>();

  constructor(ports: { readonly remote: Remote; readonly clock: Clock }) {
    this.#remote = ports.remote;
    this.#clock = ports.clock;
  }

  /** Returns a token that is valid for a while. Concurrent callers share one login. @throws RegistrarError */
  async get(account: RegistrarAccount): Promise<string> {
    const key = keyOf(account);
    const cached = this.#tokens.get(key);
    const now = this.#now();
    // A clock that was set back extends no lifetime.
    if (cached !== undefined && now >= cached.since && now < cached.usableUntil) return cached.token;
    return (await this.#logIn(key, account)).token;
  }

  /** Logs in, whatever is cached. @throws RegistrarError */
  async renew(account: RegistrarAccount): Promise<void> {
    const key = keyOf(account);
    this.#logins.forget((loginKey) => loginKey === key);
    await this.#logIn(key, account);
  }

  /** Removes a rejected token, unless it was replaced meanwhile. */
  drop(account: RegistrarAccount, token: string): void {
    const key = keyOf(account);
    if (this.#tokens.get(key)?.token === token) this.#tokens.delete(key);
  }

  #logIn(key: string, account: RegistrarAccount): Promise<RegistrarToken> {
    return this.#logins.run(key, async () => {
      const startedAt = this.#now();
      const token = await logIn(this.#remote, account, startedAt);
      this.#tokens.set(key, { ...token, since: startedAt });
      return token;
    });
  }

  #now(): number {
    return this.#clock.now().getTime();
  }
}

/** The tenant comes first, so that keys of different tenants never collide. */
function keyOf({ tenantId, configuration }: RegistrarAccount): string {
  const { oidcUrl, registrarUrl, clientId, clientSecret, username, password } = configuration;
  const login = [oidcUrl, registrarUrl, clientId, clientSecret ?? null, username, password];
  return `${tenantId} ${hash('sha256', JSON.stringify(login), 'base64url')}`;
}
