import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../application/ports/clock.ts';
import type { RegistrarAccount } from '../../application/ports/registrar.ts';
import type { Remote } from '../../application/ports/remote.ts';
import { boundedBytes } from '../../application/tenant-cache/bounded.ts';
import { SingleFlight } from '../../application/tenant-cache/single-flight.ts';
import { logIn, type RegistrarToken } from './registrar-login.ts';

const MAX_TOKEN_BYTES = 8 * 1024 * 1024;

/** Logins at registrars, each of one tenant and of one set of settings: whatever changes makes another login. */
export class RegistrarTokens {
  readonly #remote: Remote;
  readonly #clock: Clock;
  readonly #tokens = new LRUCache<string, RegistrarToken & { readonly since: number }>(boundedBytes(MAX_TOKEN_BYTES));
  readonly #logins = new SingleFlight<RegistrarToken>();

  constructor(ports: { readonly remote: Remote; readonly clock: Clock }) {
    this.#remote = ports.remote;
    this.#clock = ports.clock;
  }

  /** A token that is good for a while. The one who asks at the same time shares one login. @throws RegistrarError */
  async get(account: RegistrarAccount): Promise<string> {
    const key = keyOf(account);
    const known = this.#tokens.get(key);
    const now = this.#now();
    // A clock that was set back makes nothing live longer.
    if (known !== undefined && now >= known.since && now < known.usableUntil) return known.token;
    return (await this.#logIn(key, account)).token;
  }

  /** Logs in, whatever is known. @throws RegistrarError */
  async renew(account: RegistrarAccount): Promise<void> {
    const key = keyOf(account);
    this.#logins.forget((other) => other === key);
    await this.#logIn(key, account);
  }

  /** Forgets a token that was refused, unless another one has taken its place meanwhile. */
  drop(account: RegistrarAccount, token: string): void {
    const key = keyOf(account);
    if (this.#tokens.get(key)?.token === token) this.#tokens.delete(key);
  }

  #logIn(key: string, account: RegistrarAccount): Promise<RegistrarToken> {
    return this.#logins.run(key, async () => {
      const since = this.#now();
      const token = await logIn(this.#remote, account, since);
      this.#tokens.set(key, { ...token, since });
      return token;
    });
  }

  #now(): number {
    return this.#clock.now().getTime();
  }
}

/** The tenant stands in front, so that no two of them meet. */
function keyOf({ tenantId, configuration }: RegistrarAccount): string {
  const { oidcUrl, registrarUrl, clientId, clientSecret, username, password } = configuration;
  const login = [oidcUrl, registrarUrl, clientId, clientSecret ?? null, username, password];
  return `${tenantId} ${hash('sha256', JSON.stringify(login), 'base64url')}`;
}
