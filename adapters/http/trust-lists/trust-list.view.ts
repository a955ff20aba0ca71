import { looseObject, object, z } from 'zod';
import type { KeyChain } from '../../../domain/keys/key-chain.ts';
import { withKeyReferences } from '../../../domain/shared/older-names.ts';
import type { Tenant } from '../../../domain/tenants/tenant.ts';
import { documentOf, type ListVersion, type PublishedList } from '../../../domain/trust-lists/published-list.ts';
import { TrustListData } from '../../../domain/trust-lists/scheme-information.ts';
import { CertificateView, toCertificateView } from '../keys/certificate.view.ts';
import { viewOf } from '../output/view-of.ts';
import { TenantReference, toTenantReference } from '../shapes.ts';

const Entities = z
  .array(looseObject({ type: z.enum(['internal', 'external']), info: looseObject({ name: z.string() }) }))
  .describe('As they were written; key chains under both property names');
const Document = looseObject({
  LoTE: looseObject({ ListAndSchemeInformation: looseObject({ LoTESequenceNumber: z.number().int() }) }),
}).meta({ id: 'TrustListDocument', description: 'The document that is signed (ETSI TS 119 602)' });

export const TrustListView = object({
  id: z.string(),
  description: z.string().nullable(),
  tenantId: z.string(),
  tenant: TenantReference,
  keyChainId: z.string().describe('The key chain that signed'),
  certId: z.string().describe('Same value, under its former name'),
  cert: CertificateView.nullable().describe('Null: the signing key chain was deleted'),
  data: Document,
  entityConfig: Entities,
  sequenceNumber: z.number().int().describe('Increases with every write and every signature'),
  jwt: z.string().describe('The signed list as it is published'),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime().describe('Time of the last signature'),
}).meta({ id: 'TrustList' });

export function toTrustListView(list: PublishedList, tenant: Tenant, chains: readonly KeyChain[]) {
  const signer = chains.find((chain) => chain.id === list.signedBy);
  return viewOf(TrustListView, {
    ...list,
    ...withKeyReferences({ keyChainId: list.signedBy }),
    tenantId: tenant.id,
    tenant: toTenantReference(tenant),
    cert: signer && toCertificateView(signer, chains),
    ...contentOf(list),
  });
}

function contentOf(list: PublishedList) {
  const data = documentOf(list) as z.infer<typeof Document>;
  return { data, entityConfig: list.entities.map(withKeyReferences) };
}

export const TrustListVersionView = object({
  id: z.string(),
  trustListId: z.string(),
  trustList: object({ id: z.string(), description: z.string().nullable() }),
  tenantId: z.string(),
  sequenceNumber: z.number().int(),
  data: Document,
  entityConfig: Entities,
  jwt: z.string(),
  createdAt: z.iso.datetime().describe('Time of the signature'),
}).meta({ id: 'TrustListVersion', description: 'A previous version of a trust list' });

export function toVersionView({ id, list }: ListVersion, tenantId: string) {
  return viewOf(TrustListVersionView, {
    ...list,
    id,
    trustListId: list.id,
    trustList: viewOf(TrustListVersionView.shape.trustList, list),
    tenantId,
    ...contentOf(list),
    createdAt: list.updatedAt,
  });
}

export const TrustListExportView = object({
  id: z.string(),
  keyChainId: z.string().nullable(),
  certId: z.string().nullable(),
  description: z.string().optional(),
  entities: Entities,
  data: TrustListData.optional(),
}).meta({ id: 'TrustListExport', description: 'Body of POST and PUT that creates this list' });

/** Properties with default values are left out, or null if the contract requires them. */
export function toExportView(list: PublishedList) {
  const entities = list.entities.map(withKeyReferences);
  return withKeyReferences(viewOf(TrustListExportView, { ...list, entities }));
}
