import { z } from 'zod';
import type { KeyChain } from '../../../domain/keys/key-chain.ts';
import { defined } from '../../../domain/shared/defined.ts';
import { withKeyReferences } from '../../../domain/shared/older-names.ts';
import type { Tenant } from '../../../domain/tenants/tenant.ts';
import {
  documentOf,
  type ListVersion,
  type PublishedList,
} from '../../../domain/trust-lists/published-list.ts';
import { TrustListData } from '../../../domain/trust-lists/scheme-information.ts';
import { CertificateView, toCertificateView } from '../keys/certificate.view.ts';
import { TenantReference } from '../shapes/tenant-reference.ts';

const Entities = z
  .array(z.looseObject({ type: z.enum(['internal', 'external']), info: z.looseObject({ name: z.string() }) }))
  .describe('As they were written; key chains by both of their names');
const Document = z
  .looseObject({
    LoTE: z.looseObject({
      ListAndSchemeInformation: z.looseObject({ LoTESequenceNumber: z.number().int() }),
    }),
  })
  .describe('The document that is signed (ETSI TS 119 602)');

export const TrustListView = z
  .object({
    id: z.string(),
    description: z.string().nullable(),
    tenantId: z.string(),
    tenant: TenantReference,
    keyChainId: z.string().describe('The key chain that signed'),
    certId: z.string().describe('The same, by its older name'),
    cert: CertificateView.nullable().describe('Null: the key chain that signed is gone since'),
    data: Document,
    entityConfig: Entities,
    sequenceNumber: z.number().int().describe('Grows with every write and every signature'),
    jwt: z.string().describe('The signed list as it is published'),
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime().describe('When it was signed last'),
  })
  .meta({ id: 'TrustList' });

export function toTrustListView(
  list: PublishedList,
  tenant: Tenant,
  chains: readonly KeyChain[],
): z.infer<typeof TrustListView> {
  const { id, signedBy, sequenceNumber, jwt } = list;
  const signer = chains.find((chain) => chain.id === signedBy);
  return {
    ...withKeyReferences({ id, keyChainId: signedBy }),
    description: list.description ?? null,
    tenantId: tenant.id,
    tenant: { id: tenant.id, name: tenant.name },
    cert: signer === undefined ? null : toCertificateView(signer, chains),
    data: documentOf(list) as z.infer<typeof Document>,
    entityConfig: list.entities.map(withKeyReferences),
    sequenceNumber,
    jwt,
    createdAt: list.createdAt.toISOString(),
    updatedAt: list.updatedAt.toISOString(),
  };
}

export const TrustListVersionView = z
  .object({
    id: z.string(),
    trustListId: z.string(),
    trustList: z.object({ id: z.string(), description: z.string().nullable() }),
    tenantId: z.string(),
    sequenceNumber: z.number().int(),
    data: Document,
    entityConfig: Entities,
    jwt: z.string(),
    createdAt: z.iso.datetime().describe('When it was signed'),
  })
  .meta({
    id: 'TrustListVersion',
    description: 'A trust list as it was before it was written or signed anew',
  });

export function toVersionView(
  { id, list }: ListVersion,
  tenantId: string,
): z.infer<typeof TrustListVersionView> {
  return {
    id,
    trustListId: list.id,
    trustList: { id: list.id, description: list.description ?? null },
    tenantId,
    sequenceNumber: list.sequenceNumber,
    data: documentOf(list) as z.infer<typeof Document>,
    entityConfig: list.entities.map(withKeyReferences),
    jwt: list.jwt,
    createdAt: list.updatedAt.toISOString(),
  };
}

export const TrustListExportView = z
  .object({
    id: z.string(),
    keyChainId: z.string().nullable(),
    certId: z.string().nullable(),
    description: z.string().optional(),
    entities: Entities,
    data: TrustListData.optional(),
  })
  .meta({ id: 'TrustListExport', description: 'What POST and PUT take to make this list' });

/** Members that were left to their defaults are left out again, or null where the contract names them. */
export function toExportView(list: PublishedList): z.infer<typeof TrustListExportView> {
  const { id, keyChainId, description, entities, data } = list;
  return {
    id,
    ...withKeyReferences({ keyChainId: keyChainId ?? null }),
    ...defined({ description }),
    entities: entities.map(withKeyReferences),
    ...defined({ data }),
  };
}
