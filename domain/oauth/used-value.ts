import { NONCE_LIFETIME_SECONDS } from './challenge.ts';

/**
 * A value that may be used once, remembered until it would have expired anyway: the `jti` of a DPoP proof or of a
 * client's proof of itself, a `c_nonce`.
 *
 * The process that judges a proof computes `expiresAt`, by its own clock or from what the proof says. Whether that is over is
 * decided by the time of the database alone (`Maintenance.time`): what is over is forgotten, and refused as used, since it may have
 * been. A value is thus remembered or refused at any time, so it counts once, whatever the clocks of the processes
 * say and however many hours they differ:
 * - A process that is ahead forgets nothing too soon. The values that it makes (`c_nonce`) are remembered for longer.
 * - A process that is behind would take a proof for fresh that was forgotten. It is refused, and when the process is
 *   minutes behind, every proof is: it serves no wallet before its clock is right.
 * - Two processes whose clocks differ do not forget for each other, and what one has accepted the other refuses.
 *
 * This rests on the clock of the database (on SQLite `SteadyTime`) not going back. One that was ahead, longer than a quarter
 * of an hour on SQLite, and is set right then lets values count once more that ended and were forgotten meanwhile.
 */
export type UsedValue = { readonly kind: (typeof USED_KINDS)[number]; readonly hash: string; readonly expiresAt: Date };

/** Of several that were used before, the caller is told of the first: who it is comes before what it asks for. */
const USED_KINDS = ['client_jti', 'dpop_jti', 'c_nonce'] as const;

/** One order for everybody, so that two callers with the same values do not block each other. */
export function inOrder(uses: readonly UsedValue[]): readonly UsedValue[] {
  return uses.toSorted((one, other) => USED_KINDS.indexOf(one.kind) - USED_KINDS.indexOf(other.kind) || (one.hash < other.hash ? -1 : 1));
}

/**
 * After what counts once was forgotten, a `c_nonce` says itself that it is from before; what else there is comes with
 * a code or a token that was ended.
 * @returns one that was made at that moment or earlier.
 */
export function madeBefore(moment: Date | undefined, uses: readonly UsedValue[]): UsedValue | undefined {
  if (moment === undefined) return undefined;
  const end = moment.getTime() + NONCE_LIFETIME_SECONDS * 1000;
  return uses.find(({ kind, expiresAt }) => kind === 'c_nonce' && expiresAt.getTime() <= end);
}
