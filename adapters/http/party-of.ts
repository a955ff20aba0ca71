import type { Request } from 'express';
import type { Caller, RememberedCaller } from '../../application/caller.ts';
import type { TenantConfigurations } from '../../application/tenant-configurations.ts';
import type { Route } from './route.ts';

/** What is asked whether the service lives, and how it is: under load most of all. */
const NEVER_WAIT = new Set(['health', 'metrics']);

/**
 * Among whom places are shared: tenants, accounts that manage them, and all others together. An address may name any tenant,
 * so one that this process has not met yet has no share of its own: it would be one for each name that somebody makes up.
 * @returns undefined for what never waits.
 */
export function partyOf(
  { path }: Route,
  { params }: Request,
  caller: Caller | RememberedCaller | undefined,
  tenants: Pick<TenantConfigurations, 'isMet'>,
): string | undefined {
  if (caller !== undefined) return partyOfTenant(caller.tenantId);
  if (NEVER_WAIT.has(path.split('/', 2)[1] ?? '')) return undefined;
  const { tenant } = params;
  const isOfTenant = path.includes('/:tenant') && typeof tenant === 'string' && tenants.isMet(tenant);
  return isOfTenant ? partyOfTenant(tenant) : STRANGERS;
}

/** @param tenantId null for accounts that manage tenants. */
export function partyOfTenant(tenantId: string | null): string {
  return tenantId === null ? OPERATORS : `tenant ${tenantId}`;
}

const STRANGERS = 'strangers';
const OPERATORS = 'operators';
