import type { TenantId } from '../../domain/shared/ids.ts';
import type { ListProblem, ListSource, StoredListSummary, ValidCopy } from '../../domain/trust-lists/stored-list.ts';

/** Stored copies of a tenant's external trust lists. The id is a hash of the accepted signers and the address. */
export type StoredTrustLists = {
  goodCopy(id: string): Promise<ValidCopy | undefined>;
  /** Stores a copy unless a newer version is stored already, and clears the recorded problem. A tenant stores at most 128 lists. */
  keepCopy(id: string, place: ListSource, copy: ValidCopy): Promise<void>;
  /** Records that the stored copy was served at its address again. @returns false if another copy is stored. */
  confirmCopy(id: string, documentHash: string, now: Date): Promise<boolean>;
  /** Records a problem of a received version. @returns true if the same problem was not recorded before. */
  recordProblem(id: string, place: ListSource, finding: ListProblem, now: Date): Promise<boolean>;
  /** Lists with problems first, then by expiry; at most `limit`. */
  storedLists(limit: number): Promise<readonly StoredListSummary[]>;
  forgetList(id: string): Promise<void>;
  /** Stored copies no longer replace lists that cannot be fetched, only lists that are received with a problem. */
  distrustCopies(): Promise<void>;
  /** Removes all copies, after an operator restarted the numbering of a list. */
  dropCopies(): Promise<void>;
};

/** A problem of a list that was not reported to other systems yet. */
export type UnreportedProblem = {
  readonly tenantId: TenantId;
  readonly id: string;
  readonly place: ListSource;
  readonly finding: ListProblem;
  readonly since: Date;
};

export type StoredTrustListJobs = {
  /** Number of lists that were requested after `since` and have a problem. */
  countHeldTrustLists(since: Date): Promise<number>;
  /** Those that wait longest first. */
  unreportedProblems(limit: number): Promise<readonly UnreportedProblem[]>;
  markProblemReported(problem: UnreportedProblem): Promise<void>;
  /** Removes expired lists that were not requested since then. @returns the number of removed rows, at most `limit`. */
  forgetStoredTrustLists(usedBefore: Date, limit: number): Promise<number>;
};
