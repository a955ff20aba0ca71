import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { Failure } from '../../domain/shared/failure.ts';
import { isServing } from '../../domain/tenants/tenant-end.ts';
import { needs } from '../needs.ts';
import { AccessTokens } from '../ports/access-tokens.ts';
import { Clock } from '../ports/clock.ts';
import { Log } from '../ports/log.ts';
import { Secrets } from '../ports/secrets.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Store } from '../ports/store.ts';

/** The client credentials grant of the administrative interface (RFC 6749 section 4.4). */
export class IssueAccessToken extends needs({
  accessTokens: AccessTokens,
  secrets: Secrets,
  store: Store,
  settings: ServiceSettings,
  log: Log,
  clock: Clock,
}) {
  /**
   * @throws Failure `unauthorized_client` where an external provider issues tokens; `invalid_client`, alike for an unknown client, a wrong secret and a suspended tenant;
   *   `too_many_requests` when too many attempts on this name are under way.
   */
  async execute(clientId: string, secret: string): Promise<{ token: string; expiresInSeconds: number }> {
    const { accessTokens, secrets, store, settings, log, clock } = this.ports;
    const { issuedElsewhere } = accessTokens;
    if (issuedElsewhere !== undefined) {
      throw new Failure('unauthorized_client', `access tokens come from ${issuedElsewhere}, not from here`);
    }
    const refused = new Failure('invalid_client', { message: 'unknown client or wrong secret', basic: true });
    if (clientId === settings.rootClient.clientId) {
      log.note({ clientId });
      if (!equal(secret, settings.rootClient.secret)) {
        // As long as for any other name, which this is for a stranger.
        await secrets.verify(secret, '', clientId);
        throw refused;
      }
      return accessTokens.issue(rootAccess(settings));
    }
    const client = await store.forService(async ({ clients, tenants }) => {
      const found = await clients.find(clientId);
      if (found === undefined || found.tenantId === null) return undefined;
      const tenant = await tenants.find(found.tenantId);
      return tenant !== undefined && isServing(tenant, clock.now()) ? found : undefined;
    });
    // A name that nobody has may be anything, a secret too.
    if (client !== undefined) log.note({ tenantId: client.tenantId, clientId });
    // Whether there is a hash can be seen neither by the time nor by the number of attempts that are let in.
    const matches = await secrets.verify(secret, client?.secretHash ?? '', clientId);
    if (client === undefined || client.tenantId === null || !matches) throw refused;
    const { tenantId: subject, roles, secretRevision } = client;
    const clientSince = client.createdAt.getTime();
    return accessTokens.issue({ subject, clientId, roles, clientSince, secretRevision });
  }
}

/** What the tokens of the account of the operator say. */
export function rootAccess(settings: Pick<ServiceSettings, 'rootClient'>) {
  const { clientId } = settings.rootClient;
  const roles = ['tenants:manage'] as const;
  return { subject: clientId, clientId, roles, clientSince: sinceOfRoot(settings), secretRevision: 0 };
}

/**
 * What ties the tokens of the account of the operator to its secret, as the time of its creation does for other clients:
 * they end when the secret is replaced. 48 bits of a hash tell nothing about a secret of 16 characters and more.
 */
export function sinceOfRoot({ rootClient }: Pick<ServiceSettings, 'rootClient'>): number {
  return createHmac('sha256', rootClient.secret).update('vidimus/root-tokens').digest().readUIntBE(0, 6);
}

function equal(one: string, other: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}
