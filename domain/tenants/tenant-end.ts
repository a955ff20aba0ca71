import { Failure, invalidInput } from '../shared/failure.ts';
import { SERVING, type TenantStatus } from './tenant-status.ts';

/** For how long a tenant can be made at most, when it is said at all; leap years are not counted. */
const MAX_YEARS = 10;
const YEAR_MS = 365 * 86_400_000;

type Standing = { readonly status: TenantStatus; readonly endsAt?: Date | null };

/** Whether its time is over: then it is removed, and serves nobody until that is done. */
export function hasEnded({ endsAt }: Pick<Standing, 'endsAt'>, now: Date): boolean {
  return endsAt !== null && endsAt !== undefined && endsAt <= now;
}

/** Whether a tenant serves wallets and clients at this moment. */
export function isServing(tenant: Standing, now: Date): boolean {
  return tenant.status === SERVING && !hasEnded(tenant, now);
}

/**
 * When a tenant is to end.
 * @param wanted undefined: as it was; null: never.
 * @throws Failure `conflict` for a tenant whose time is over, `invalid_input` for a time that is over, or that is more than ten years away.
 */
export function endOf(wanted: string | null | undefined, former: Date | null, now: Date): Date | null {
  // What is over stays over, however long its removal takes.
  if (former !== null && former <= now) throw new Failure('conflict', 'the time of this tenant is over; it is being removed');
  if (wanted === undefined) return former;
  if (wanted === null) return null;
  const end = new Date(wanted);
  if (end.getTime() === former?.getTime()) return former;
  if (end <= now) throw invalidInput('endsAt', 'this time is over; choose one to come, or null for never');
  if (end.getTime() > now.getTime() + MAX_YEARS * YEAR_MS) {
    throw invalidInput('endsAt', `at most ${MAX_YEARS} years from now, or null for never`);
  }
  return end;
}
