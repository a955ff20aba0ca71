import { type Client, isSecretCurrent } from '../../domain/clients/client.ts';
import type { TenantCaller } from '../caller.ts';
import type { VerifiedAccess } from '../ports/access-tokens.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

export type Rights = Pick<TenantCaller, 'roles' | 'allowedPresentationConfigs' | 'allowedIssuanceConfigs'> & {
  /** When the token ends before its time, since the secret was replaced that it was had with. */
  readonly endsAt?: Date;
};

/** Why a token gives no rights: its client was removed, is not the one that it was made for, or got another secret. */
export type NoRights = 'removed' | 'gone' | 'replaced';

/**
 * What an access token is good for at the tenant as `view` shows it. What is stored of a client counts at this moment. A client of an
 * external provider may be unknown to the tenant of its token, whatever other tenants know of it; where it is known it has the rights that
 * both sides give it, and one who was limited here does not become free by being removed.
 */
export async function rightsOf(access: VerifiedAccess, configured: TenantConfiguration, now: Date): Promise<Rights | NoRights> {
  const client = await configured.client(access.clientId);
  if (!access.isExternal) {
    // A client made anew under an old name does not inherit the old one's tokens.
    if (client === undefined || access.clientSince !== client.createdAt.getTime()) return 'gone';
    if (!isSecretCurrent(client, access.secretRevision, now)) return 'replaced';
    const { secretRevision, formerSecretUntil } = client;
    const isFormer = access.secretRevision !== secretRevision && formerSecretUntil !== null;
    return { ...withRoles(client.roles, client), ...(isFormer && { endsAt: formerSecretUntil }) };
  }
  const roles = access.roles.filter((role) => role !== 'tenants:manage');
  if (client !== undefined) {
    const shared = roles.filter((role) => client.roles.includes(role));
    return withRoles(shared, client);
  }
  if (await configured.isRemovedClient(access.clientId)) return 'removed';
  return { roles, allowedPresentationConfigs: null, allowedIssuanceConfigs: null };
}

function withRoles(roles: Rights['roles'], { allowedPresentationConfigs, allowedIssuanceConfigs }: Client): Rights {
  return { roles, allowedPresentationConfigs, allowedIssuanceConfigs };
}
