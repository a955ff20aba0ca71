import { hash } from 'node:crypto';
import type { TenantId } from '../shared/ids.ts';
import type { PublicJwk } from '../shared/jwk.ts';

/** RFC 5280 section 4.2.1.2, method 1: SHA-1 of the key's bit string, hexadecimal. It names a key and secures nothing. */
export function keyIdentifier({ x, y }: PublicJwk): string {
  const point = [Buffer.from(x, 'base64url'), ...(y === undefined ? [] : [Buffer.from(y, 'base64url')])];
  const prefix = y === undefined ? [] : [Buffer.of(0x04)];
  return hash('sha1', Buffer.concat([...prefix, ...point]), 'hex');
}

/** Where an authority of a tenant publishes. Its certificates carry these for as long as they live. */
export type AuthorityAddresses = {
  /** The list of what it revoked (RFC 5280 section 4.2.1.13). */
  readonly revocationList: string;
  /** Its own certificate (RFC 5280 section 4.2.2.1). */
  readonly certificate: string;
};

/** @param key of the authority. */
export function authorityAddresses(publicUrl: string, tenantId: string, key: PublicJwk): AuthorityAddresses {
  const id = keyIdentifier(key);
  return {
    revocationList: `${publicUrl}/${tenantId}/crl/${id}`,
    certificate: `${publicUrl}/${tenantId}/ca/${id}`,
  };
}

/** Names the list of an authority of this service. */
export type OwnRevocationList = { readonly tenantId: TenantId; readonly authorityId: string };

const PATH = /^([a-z0-9-]+)\/crl\/([0-9a-f]{40})$/;

/** @returns undefined for an address that is none of this service. */
export function ownRevocationListOf(uri: string, publicUrl: string): OwnRevocationList | undefined {
  if (!uri.startsWith(`${publicUrl}/`)) return undefined;
  const [, tenantId, authorityId] = PATH.exec(uri.slice(publicUrl.length + 1)) ?? [];
  if (tenantId === undefined || authorityId === undefined) return undefined;
  return { tenantId: tenantId as TenantId, authorityId };
}
