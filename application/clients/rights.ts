import { type Client, isSecretCurrent } from '../../domain/clients/client.ts';
import type { TenantCaller } from '../caller.ts';
import type { VerifiedAccess } from '../ports/access-tokens.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

export type Rights = Pick<TenantCaller, 'roles' | 'allowedPresentationConfigs' | 'allowedIssuanceConfigs'> & {
  /** Earlier end of the token, because the secret was replaced. */
  readonly endsAt?: Date;
};

/** Reasons for which a token is invalid: its client was removed, created again, or got another secret. */
export type NoRights = 'removed' | 'gone' | 'replaced';

/**
 * The rights of an access token in its tenant. The stored rights of a client apply at the moment of the call. A client of an external
 * provider may be unknown to the tenant; a known one has the rights that both sides grant, and removing a limited
 * client does not remove its limits.
 */
export async function rightsOf(access: VerifiedAccess, tenant: TenantConfiguration, now: Date): Promise<Rights | NoRights> {
  const client = await tenant.client(access.clientId);
  if (!access.isExternal) {
    // A client that was created again under the same id does not inherit old tokens.
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
  if (await tenant.isRemovedClient(access.clientId)) return 'removed';
  return { roles, allowedPresentationConfigs: null, allowedIssuanceConfigs: null };
}

function withRoles(roles: Rights['roles'], { allowedPresentationConfigs, allowedIssuanceConfigs }: Client): Rights {
  return { roles, allowedPresentationConfigs, allowedIssuanceConfigs };
}
