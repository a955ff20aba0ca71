import type { TenantId } from '../shared/ids.ts';

/** Identifies a trust list that this service publishes. */
export type InternalTrustList = { readonly tenantId: TenantId; readonly listId: string };

/** List ids need no escaping. */
const PATH = /^([a-z0-9-]+)\/trust-list\/([^/?#%]+)$/;

/** @returns undefined for an external address. */
export function parseInternalTrustListAddress(uri: string, publicUrl: string): InternalTrustList | undefined {
  if (!uri.startsWith(`${publicUrl}/`)) return undefined;
  const [, tenantId, listId] = PATH.exec(uri.slice(publicUrl.length + 1)) ?? [];
  if (tenantId === undefined || listId === undefined) return undefined;
  return { tenantId: tenantId as TenantId, listId };
}
