import type { TrustList } from './lote.ts';
import type { TrustListFault } from './trust-list-refusal.ts';

/** The last release of somebody else's list that was found good. */
export type GoodCopy = {
  readonly list: TrustList;
  readonly documentHash: string;
  readonly contentHash: string;
  /** When it was found at its address for the last time. */
  readonly checkedAt: Date;
};

/** Why what came later takes the place of nothing. */
export type ListFinding = {
  readonly fault: TrustListFault;
  readonly reason: string;
  /** DER in standard base64: who signed it, and is not pinned. A person decides. */
  readonly signer?: string;
};

/** Where a list was named from, for who reads what the service keeps. */
export type ListPlace = {
  readonly uri: string;
  /** The list of lists that points to it. */
  readonly via?: string;
};

/** What is kept of a list that a tenant follows, without the list itself. */
export type KeptListSummary = {
  readonly id: string;
  readonly place: ListPlace;
  /** 0: no release was found good yet. */
  readonly sequenceNumber: number;
  /** Until when the good copy may be used; `null` without one. */
  readonly endsAt: Date | null;
  /** When it was found at its address for the last time; `null` without a good copy, and since copies were forgotten. */
  readonly checkedAt: Date | null;
  /** When it was looked for last. */
  readonly seenAt: Date;
  readonly held: (ListFinding & { readonly since: Date }) | null;
};

/**
 * Faults of a release that nobody ought to have made: its operator, or somebody else, did something that a person has to look
 * at. What was good before stays good until it says that it ends.
 */
const HELD: readonly TrustListFault[] = ['sequence_reused', 'untrusted_signer', 'another_list'];
/** A copy counts for so long without being found again where nothing is known against it. */
export const UNSEEN_MS = 60 * 60 * 1000;

/** How long a copy that is there stands in for a list that cannot be used. @returns undefined: not at all. */
export function standsInUntil(copy: GoodCopy, fault: TrustListFault, now: Date): Date | undefined {
  const { nextUpdate } = copy.list;
  const unseen = copy.checkedAt.getTime() + UNSEEN_MS;
  const end = nextUpdate?.getTime() ?? unseen;
  if (!HELD.includes(fault) && fault !== 'unavailable') return undefined;
  const until = HELD.includes(fault) ? end : Math.min(end, unseen);
  return now.getTime() < until ? new Date(until) : undefined;
}

/** Whether a person has to look at what came. */
export function isHeld(fault: TrustListFault): boolean {
  return HELD.includes(fault);
}

/** Equal for what a person has to look at once. */
export function findingKey({ fault, signer, reason }: ListFinding): string {
  return `${fault} ${signer ?? reason}`;
}
