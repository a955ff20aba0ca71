import { NONCE_LIFETIME_SECONDS } from './challenge.ts';

/**
 * A single-use value, stored until it would have expired anyway: the `jti` of a DPoP proof or of a client assertion, a `c_nonce`.
 * The process that validates a proof computes `expiresAt`, by its own clock or from the proof's claims. Expiry is decided by the time of
 * the database alone (`Maintenance.time`): expired values are deleted, and rejected as used, because they may have been. At any time a
 * value is either stored or rejected, so it is accepted once, even if the clocks of processes differ by hours:
 * - A process whose clock is ahead deletes nothing too early. The values that it creates (`c_nonce`) are stored for longer.
 * - A process whose clock is behind would consider a deleted proof fresh. The proof is rejected. If the clock is minutes behind, every
 * proof is rejected: the process serves no wallet until its clock is right.
 * - Two processes with different clocks do not delete values for each other, and each rejects values that the other accepted.
 * This requires that the clock of the database (on SQLite `SteadyTime`) does not go back. After the correction of a clock that was ahead
 * (on SQLite by more than a quarter of an hour), values that expired and were deleted meanwhile can be used again.
 */
export type ConsumedValue = { readonly kind: (typeof CONSUMED_KINDS)[number]; readonly hash: string; readonly expiresAt: Date };

/** If several values were used before, the first kind is reported: client authentication comes before the request. */
const CONSUMED_KINDS = ['client_jti', 'dpop_jti', 'c_nonce'] as const;

/** A fixed order prevents deadlocks between callers with the same values. */
export function sortConsumedValues(uses: readonly ConsumedValue[]): readonly ConsumedValue[] {
  return uses.toSorted((a, b) => CONSUMED_KINDS.indexOf(a.kind) - CONSUMED_KINDS.indexOf(b.kind) || (a.hash < b.hash ? -1 : 1));
}

/**
 * After the deletion of single-use values, a `c_nonce` shows by its time that it is older; other values come with a code or a token that
 * was revoked.
 * @returns a nonce that was created at that moment or earlier.
 */
export function findNonceCreatedBefore(moment: Date | undefined, uses: readonly ConsumedValue[]): ConsumedValue | undefined {
  if (moment === undefined) return undefined;
  const end = moment.getTime() + NONCE_LIFETIME_SECONDS * 1000;
  return uses.find(({ kind, expiresAt }) => kind === 'c_nonce' && expiresAt.getTime() <= end);
}
