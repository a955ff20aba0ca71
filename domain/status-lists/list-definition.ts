import { object, type z } from 'zod';
import { Reference } from '../shared/bounds.ts';
import { StatusListConfig } from '../tenants/tenant.ts';

/**
 * Lists of a tenant that no credential uses; one who wants more removes some first. Lists in use do not count, since
 * issuing makes as many as it needs.
 */
export const MAX_UNUSED_LISTS = 100;

/** What a list is made of. Its shape is that of the tenant's configuration unless stated. */
export const StatusListCreation = object({
  credentialConfigurationId: Reference.nullish().describe('Only credentials of this configuration get entries; null: all may'),
  keyChainId: Reference.nullish().describe("Signs the list; null: the tenant's default for status lists"),
  ...StatusListConfig.shape,
}).meta({ id: 'StatusListCreation' });
export type StatusListCreation = z.infer<typeof StatusListCreation>;

/** The rest of a list is part of the credentials that point at it. */
export const StatusListUpdate = StatusListCreation.pick({ credentialConfigurationId: true, keyChainId: true }).meta({
  id: 'StatusListUpdate',
});
export type StatusListUpdate = z.infer<typeof StatusListUpdate>;
