import { RemoteAuthorizationServers } from '../../adapters/remote/authorization-servers.ts';
import { GuardedHttpClient } from '../../adapters/remote/http-client.ts';
import { AuthorizationServerError, type AuthorizationServerFault } from '../../application/ports/authorization-servers.ts';
import { Clock } from '../../application/ports/clock.ts';
import { ForeignTokenError, type ForeignTokenReason } from '../../domain/oauth/foreign-token.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { MisbehavingProvider } from './misbehaving-provider.ts';

class SettableClock extends Clock {
  time = Date.now();
  override now(): Date {
    return new Date(this.time);
  }
}

/** The outcome of a call: `good`, or the reason of its failure. */
export async function outcome(work: Promise<unknown>): Promise<AuthorizationServerFault | ForeignTokenReason | 'good'> {
  try {
    await work;
    return 'good';
  } catch (error) {
    if (error instanceof AuthorizationServerError) return error.fault;
    if (error instanceof ForeignTokenError) return error.reason;
    throw error;
  }
}

/** A provider that a test can falsify, and the service's side of it with a settable clock. */
export class ForeignWorld {
  readonly provider: MisbehavingProvider;
  readonly clock = new SettableClock();
  readonly servers: RemoteAuthorizationServers;
  readonly #tenantId = 'acme' as TenantId;
  readonly #remote = new GuardedHttpClient({ allow: ['127.0.0.1'] });

  private constructor(provider: MisbehavingProvider) {
    this.provider = provider;
    this.servers = new RemoteAuthorizationServers({ remote: this.#remote, clock: this.clock });
  }

  static async start(): Promise<ForeignWorld> {
    return new ForeignWorld(await MisbehavingProvider.start());
  }

  async close(): Promise<void> {
    await this.provider.close();
    await this.#remote.close();
  }

  discovery(issuer = this.provider.issuer) {
    return outcome(this.servers.discover(issuer, this.#tenantId));
  }

  accessToken(token: string) {
    const expected = { tenantId: this.#tenantId, audience: 'client', types: ['at+jwt', undefined], now: this.clock.now() };
    return outcome(this.servers.verifyToken(this.provider.issuer, token, expected));
  }

  idToken(token: string, accessToken?: string) {
    const expected = { tenantId: this.#tenantId, clientId: 'client', nonce: 'n-1', accessToken, now: this.clock.now() };
    return outcome(this.servers.verifyIdToken(this.provider.issuer, token, expected));
  }
}
