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
   * @throws Failure `unauthorized_client` if an external provider issues tokens; `invalid_client` for an unknown client, a wrong secret
   *   and a suspended tenant; `too_many_requests` when too many attempts on this id are under way.
   */
  async execute(clientId: string, secret: string): Promise<{ token: string; expiresInSeconds: number }> {
    const { accessTokens, secrets, store, settings, log, clock } = this.ports;
    const { externalIssuer } = accessTokens;
    if (externalIssuer !== undefined) {
      throw new Failure('unauthorized_client', `access tokens are issued by ${externalIssuer}, not by this service`);
    }
    const invalidClientError = new Failure('invalid_client', { message: 'unknown client or wrong secret', basic: true });
    if (clientId === settings.rootClient.clientId) {
      log.note({ clientId });
      if (!equal(secret, settings.rootClient.secret)) {
        // Takes as long as for any other id, so that the id is not revealed.
        await secrets.verify(secret, '', clientId);
        throw invalidClientError;
      }
      return accessTokens.issue(rootAccessClaims(settings));
    }
    const client = await store.forService(async ({ clients, tenants }) => {
      const storedClient = await clients.find(clientId);
      if (storedClient === undefined || storedClient.tenantId === null) return undefined;
      const tenant = await tenants.find(storedClient.tenantId);
      return tenant !== undefined && isServing(tenant, clock.now()) ? storedClient : undefined;
    });
    // The id of an unknown client is not logged: it may be a mistyped secret.
    if (client !== undefined) log.note({ tenantId: client.tenantId, clientId });
    // Neither the time nor the number of accepted attempts reveals if the client exists.
    const matches = await secrets.verify(secret, client?.secretHash ?? '', clientId);
    if (client === undefined || client.tenantId === null || !matches) throw invalidClientError;
    const { tenantId: subject, roles, secretRevision } = client;
    const clientSince = client.createdAt.getTime();
    return accessTokens.issue({ subject, clientId, roles, clientSince, secretRevision });
  }
}

export function rootAccessClaims(settings: Pick<ServiceSettings, 'rootClient'>) {
  const { clientId } = settings.rootClient;
  const roles = ['tenants:manage'] as const;
  return { subject: clientId, clientId, roles, clientSince: rootClientSince(settings), secretRevision: 0 };
}

/**
 * Ties the tokens of the root client to its secret, in place of the creation time of other clients: they become invalid when the
 * secret is replaced. 48 bits of a hash reveal nothing about a secret of 16 or more characters.
 */
export function rootClientSince({ rootClient }: Pick<ServiceSettings, 'rootClient'>): number {
  return createHmac('sha256', rootClient.secret).update('vidimus/root-tokens').digest().readUIntBE(0, 6);
}

function equal(text: string, otherText: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(text), digest(otherText));
}
