import type { TrustList } from './lote.ts';
import type { TrustListFault } from './trust-list-refusal.ts';

/** The last valid version of an external list. */
export type ValidCopy = {
  readonly list: TrustList;
  readonly documentHash: string;
  readonly contentHash: string;
  /** Time of the last request that returned it. */
  readonly checkedAt: Date;
};

/** The reason why a newer version does not replace the stored one. */
export type ListProblem = {
  readonly fault: TrustListFault;
  readonly reason: string;
  /** The signer that is not pinned, DER in standard base64. An administrator decides about it. */
  readonly signer?: string;
};

/** Source of a list's address, for administrators. */
export type ListSource = { readonly uri: string; readonly via?: string };

export type StoredListSummary = {
  readonly id: string;
  readonly place: ListSource;
  /** 0: no valid version yet. */
  readonly sequenceNumber: number;
  /** End of the use of the valid copy; `null` without one. */
  readonly endsAt: Date | null;
  /** Time of the last request that returned it; `null` without a valid copy, and after copies were deleted. */
  readonly checkedAt: Date | null;
  /** Time of the last request. */
  readonly seenAt: Date;
  readonly held: (ListProblem & { readonly since: Date }) | null;
};

/**
 * Faults that indicate manipulation, by the operator or an attacker, and that an administrator must examine. The stored version stays valid
 * until its end.
 */
const SUSPICIOUS_FAULTS: readonly TrustListFault[] = ['sequence_reused', 'untrusted_signer', 'another_list'];
/** Limit for the use of a copy without a successful request, for lists without such a fault. */
export const MAX_FALLBACK_MS = 60 * 60 * 1000;

/** End of the use of a stored copy as a fallback for an unusable list. @returns undefined for no fallback. */
export function fallbackUntil(copy: ValidCopy, fault: TrustListFault, now: Date): Date | undefined {
  const { nextUpdate } = copy.list;
  const maxFallbackTime = copy.checkedAt.getTime() + MAX_FALLBACK_MS;
  const end = nextUpdate?.getTime() ?? maxFallbackTime;
  if (!SUSPICIOUS_FAULTS.includes(fault) && fault !== 'unavailable') return undefined;
  const fallbackEnd = SUSPICIOUS_FAULTS.includes(fault) ? end : Math.min(end, maxFallbackTime);
  return now.getTime() < fallbackEnd ? new Date(fallbackEnd) : undefined;
}

/** True for faults that an administrator must examine. */
export function isSuspicious(fault: TrustListFault): boolean {
  return SUSPICIOUS_FAULTS.includes(fault);
}

/** Key of a fault, so that an administrator is notified about it once. */
export function problemKey({ fault, signer, reason }: ListProblem): string {
  return `${fault} ${signer ?? reason}`;
}
