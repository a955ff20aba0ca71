import { Failure, invalidInput } from '../shared/failure.ts';
import { SERVING, type TenantStatus } from './tenant-status.ts';

/** Limit for the end of a tenant, ignoring leap years. */
const MAX_YEARS = 10;
const YEAR_MS = 365 * 86_400_000;

type TenantState = { readonly status: TenantStatus; readonly endsAt?: Date | null };

/** True if the tenant has expired: it serves no requests, and is going to be deleted. */
export function hasEnded({ endsAt }: Pick<TenantState, 'endsAt'>, now: Date): boolean {
  return endsAt !== null && endsAt !== undefined && endsAt <= now;
}

/** True if a tenant serves wallets and clients at this time. */
export function isServing(tenant: TenantState, now: Date): boolean {
  return tenant.status === SERVING && !hasEnded(tenant, now);
}

/**
 * Determines the end of a tenant.
 * @param requested undefined: unchanged; null: never.
 * @throws Failure `conflict` for an expired tenant, `invalid_input` for a time in the past, or more than ten years away.
 */
export function tenantEnd(requested: string | null | undefined, previousEnd: Date | null, now: Date): Date | null {
  // An expired tenant stays expired, however long its deletion takes.
  if (previousEnd !== null && previousEnd <= now)
    throw new Failure('conflict', 'the end date of this tenant has passed; it is being removed');
  if (requested === undefined) return previousEnd;
  if (requested === null) return null;
  const end = new Date(requested);
  if (end.getTime() === previousEnd?.getTime()) return previousEnd;
  if (end <= now) throw invalidInput('endsAt', 'this time has passed; choose a future time, or null for never');
  if (end.getTime() > now.getTime() + MAX_YEARS * YEAR_MS) {
    throw invalidInput('endsAt', `at most ${MAX_YEARS} years from now, or null for never`);
  }
  return end;
}
