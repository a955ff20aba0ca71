import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import type { IssuedCertificate } from '../../../domain/keys/compromised-keys.ts';
import { DOCUMENTS, type DocumentKind } from '../../../domain/resources.ts';
import type { StoredRevisions } from '../../../domain/tenants/revisions.ts';
import { tableOf } from './document-tables.ts';
import { tenantFilter, tenantTable, time } from './row-parts.ts';

export const TenantRow = defineEntity({
  name: 'TenantRow',
  tableName: 'tenants',
  properties: {
    id: p.string().primary(),
    name: p.string(),
    description: p.text().nullable(),
    status: p.string(),
    sessionConfig: p.json<unknown>().nullable(),
    statusListConfig: p.json<unknown>().nullable(),
    kms: p.string().nullable(),
    profile: p.string().nullable(),
    organization: p.json<unknown>().nullable(),
    endsAt: time().nullable(),
    /** Raised by every change of the configuration. */
    revision: p.integer(),
    revisions: p.json<StoredRevisions>(),
    version: p.integer(),
    createdAt: time(),
    updatedAt: time(),
  },
});
export type TenantRow = InferEntity<typeof TenantRow>;

/** Client ids are unique over all tenants, because the token endpoint identifies clients by their id alone. */
export const ClientRow = defineEntity({
  name: 'ClientRow',
  tableName: 'clients',
  properties: {
    clientId: p.string().primary(),
    tenantId: p.string().nullable(),
    roles: p.json<readonly string[]>(),
    description: p.text().nullable(),
    allowedPresentationConfigs: p.json<readonly string[]>().nullable(),
    allowedIssuanceConfigs: p.json<readonly string[]>().nullable(),
    secretHash: p.text(),
    secretRevision: p.integer().default(0),
    formerSecretUntil: time().nullable(),
    pickUp: p.json<unknown>().nullable(),
    /** MAC over the rights of the client, see `client-macs.ts`; null in a row of an earlier release. */
    mac: p.text().nullable(),
    version: p.integer(),
    createdAt: time(),
    updatedAt: time(),
  },
  indexes: [{ name: 'clients_of_tenant', properties: ['tenantId', 'clientId'] }],
  filters: tenantFilter,
});
export type ClientRow = InferEntity<typeof ClientRow>;

/** Time since when every client has a MAC. */
export const ClientMacMarkerRow = defineEntity({
  name: 'ClientMacMarkerRow',
  tableName: 'client_mac_markers',
  properties: { id: p.string().primary(), since: time(), toleratedUntil: time(), code: p.text() },
});

/** Ids of clients that a tenant removed. Tokens of an external provider still name them. */
export const RemovedClientRow = tenantTable('RemovedClientRow', 'removed_clients', [], { clientId: p.string().primary() });

/**
 * Keys at a provider that no key chain uses any more, until they are destroyed there. They outlive their tenant, so the column of its id
 * has another name.
 */
export const RetiredKeyRow = defineEntity({
  name: 'RetiredKeyRow',
  tableName: 'retired_keys',
  properties: {
    owner: p.string().primary(),
    kms: p.string().primary(),
    keyId: p.string().primary(),
    algorithm: p.string(),
    retiredAt: time(),
  },
});

/** Compromised public keys, and certificates of removed key chains: `RecordedKey`. */
export const RecordedKeyRow = tenantTable('RecordedKeyRow', 'recorded_keys', [], {
  thumbprint: p.string().primary(),
  compromisedAt: time().nullable(),
  certificates: p.json<readonly IssuedCertificate[]>(),
});

/** Documents have sealed bodies, because they can contain webhook keys, claims, private keys and logins. */
export const documentRows = new Map(DOCUMENTS.map(({ kind }) => [kind, documentRow(kind)]));

function documentRow(kind: DocumentKind) {
  const words = kind.split('-');
  const name = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
  return tenantTable(`${name}Row`, tableOf(kind), [], { id: p.string().primary(), body: p.text(), createdAt: time(), updatedAt: time() });
}
