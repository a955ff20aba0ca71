import type { TenantId } from '../shared/ids.ts';

/** Names a trust list that this service publishes. */
export type OwnTrustList = { readonly tenantId: TenantId; readonly listId: string };

/** Ids of lists need no escapes. */
const PATH = /^([a-z0-9-]+)\/trust-list\/([^/?#%]+)$/;

/** @returns undefined for an address that is none of this service. */
export function ownTrustListOf(uri: string, publicUrl: string): OwnTrustList | undefined {
  if (!uri.startsWith(`${publicUrl}/`)) return undefined;
  const [, tenantId, listId] = PATH.exec(uri.slice(publicUrl.length + 1)) ?? [];
  if (tenantId === undefined || listId === undefined) return undefined;
  return { tenantId: tenantId as TenantId, listId };
}
