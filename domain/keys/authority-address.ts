import { hash } from 'node:crypto';
import type { TenantId } from '../shared/ids.ts';
import type { PublicJwk } from '../shared/jwk.ts';

/** RFC 5280 section 4.2.1.2, method 1: SHA-1 of the key's bit string, hexadecimal. It identifies a key and has no security function. */
export function keyIdentifier({ x, y }: PublicJwk): string {
  const point = [Buffer.from(x, 'base64url'), ...(y === undefined ? [] : [Buffer.from(y, 'base64url')])];
  const prefix = y === undefined ? [] : [Buffer.of(0x04)];
  return hash('sha1', Buffer.concat([...prefix, ...point]), 'hex');
}

/** Publication addresses of a tenant's authority. Its certificates contain them for their whole life. */
export type AuthorityAddresses = {
  /** The certificate revocation list (RFC 5280 section 4.2.1.13). */
  readonly revocationList: string;
  /** The authority's certificate (RFC 5280 section 4.2.2.1). */
  readonly certificate: string;
};

/** @param key of the authority. */
export function authorityAddresses(publicUrl: string, tenantId: string, key: PublicJwk): AuthorityAddresses {
  const id = keyIdentifier(key);
  return { revocationList: `${publicUrl}/${tenantId}/crl/${id}`, certificate: `${publicUrl}/${tenantId}/ca/${id}` };
}

/** Identifies the revocation list of an authority of this service. */
export type InternalRevocationList = { readonly tenantId: TenantId; readonly authorityId: string };

const PATH = /^([a-z0-9-]+)\/crl\/([0-9a-f]{40})$/;

/** @returns undefined for an external address. */
export function parseInternalRevocationList(uri: string, publicUrl: string): InternalRevocationList | undefined {
  if (!uri.startsWith(`${publicUrl}/`)) return undefined;
  const [, tenantId, authorityId] = PATH.exec(uri.slice(publicUrl.length + 1)) ?? [];
  if (tenantId === undefined || authorityId === undefined) return undefined;
  return { tenantId: tenantId as TenantId, authorityId };
}
