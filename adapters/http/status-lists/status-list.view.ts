import { z } from 'zod';
import type { ServiceSettings } from '../../../application/ports/settings.ts';
import { statusListUri } from '../../../application/status-lists/status-allocator.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { withKeyReferences } from '../../../domain/shared/older-names.ts';
import type { StatusList } from '../../../domain/status-lists/status-list.ts';
import { viewOf } from '../view-of.ts';

export const StatusListView = z
  .object({
    id: z.string(),
    tenantId: z.string(),
    credentialConfigurationId: z.string().nullable().describe('Null: shared'),
    keyChainId: z.string().nullable().describe("Null: the tenant's default signs"),
    certId: z.string().nullable().describe('The older name of `keyChainId`'),
    bits: z.union([z.literal(1), z.literal(2), z.literal(4), z.literal(8)]),
    capacity: z.number().int(),
    usedEntries: z
      .number()
      .int()
      .describe(
        'Entries that credentials got. Processes take entries in advance: those that another process has taken and not yet ' +
          'given to a credential count as used here',
      ),
    availableEntries: z.number().int(),
    uri: z.string(),
    ttl: z.number().int().describe('Seconds that a token of the list is valid'),
    immediateUpdate: z.boolean(),
    enableAggregation: z.boolean(),
    createdAt: z.iso.datetime(),
    expiresAt: z.iso.datetime().nullable().describe('End of the token made last; null before the first'),
  })
  .meta({ id: 'StatusList', description: 'A status list as its tenant administers it' });

export function toStatusListView(settings: ServiceSettings, tenantId: TenantId, list: StatusList) {
  return withKeyReferences(
    viewOf(StatusListView, {
      ...list,
      tenantId,
      availableEntries: list.capacity - list.usedEntries,
      uri: statusListUri(settings, tenantId, list.id),
      ttl: list.ttlSeconds,
      expiresAt: list.tokenExpiresAt,
    }),
  );
}
