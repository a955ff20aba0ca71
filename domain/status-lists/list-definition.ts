import { object, type z } from 'zod';
import { Reference } from '../shared/bounds.ts';
import { StatusListConfig } from '../tenants/tenant.ts';

/** Limit of unused lists per tenant. Lists in use do not count, because issuing creates as many as necessary. */
export const MAX_UNUSED_LISTS = 100;

/** Input for a new list. Its shape is that of the tenant's configuration unless stated. */
export const StatusListCreation = object({
  credentialConfigurationId: Reference.nullish().describe(
    'Only credentials of this configuration get entries; null: credentials of any configuration',
  ),
  keyChainId: Reference.nullish().describe('Key chain that signs the list; null: the default of the tenant for status lists'),
  ...StatusListConfig.shape,
}).meta({ id: 'StatusListCreation' });
export type StatusListCreation = z.infer<typeof StatusListCreation>;

/** Other properties are part of the credentials that reference the list. */
export const StatusListUpdate = StatusListCreation.pick({ credentialConfigurationId: true, keyChainId: true }).meta({
  id: 'StatusListUpdate',
});
export type StatusListUpdate = z.infer<typeof StatusListUpdate>;
