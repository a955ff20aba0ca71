import type { TenantId } from '../../domain/shared/ids.ts';
import type { GoodCopy, KeptListSummary, ListFinding, ListPlace } from '../../domain/trust-lists/kept-list.ts';

/** What a tenant's store keeps of lists of others, by the hash of who may sign them and their address. */
export type KeptTrustLists = {
  /** The good copy, whatever came later. */
  goodCopy(id: string): Promise<GoodCopy | undefined>;
  /** Keeps a copy unless a newer release is kept already, and drops what was held against one. A tenant keeps at most 128 lists. */
  keepCopy(id: string, place: ListPlace, copy: GoodCopy): Promise<void>;
  /** The kept copy was found at its address once more. @returns false where another one is kept. */
  confirmCopy(id: string, documentHash: string, now: Date): Promise<boolean>;
  /** Notes what is held against a release that came. @returns whether nobody had noted just that. */
  holdAgainst(id: string, place: ListPlace, finding: ListFinding, now: Date): Promise<boolean>;
  /** All, those first that have something held against them, then by their end; at most `limit`. */
  keptLists(limit: number): Promise<readonly KeptListSummary[]>;
  /** Forgets one. */
  forgetList(id: string): Promise<void>;
  /** Copies count no longer for lists that cannot be had, only for those that come with something against them. */
  distrustCopies(): Promise<void>;
  /** Nothing is kept any more: after an operator began its numbers anew. */
  dropCopies(): Promise<void>;
};

/** Something that is held against a list, and that nobody outside was told of. */
export type UntoldFinding = {
  readonly tenantId: TenantId;
  readonly id: string;
  readonly place: ListPlace;
  readonly finding: ListFinding;
  readonly since: Date;
};

/** The same of all tenants, for jobs. */
export type KeptTrustListJobs = {
  /** How many lists that were looked for after `since` have something held against them. */
  heldTrustLists(since: Date): Promise<number>;
  /** Those that wait longest first. */
  untoldFindings(limit: number): Promise<readonly UntoldFinding[]>;
  /** Others know of it. */
  toldFinding(told: UntoldFinding): Promise<void>;
  /** Forgets lists that ended, and that nobody looked for since then. @returns how many rows went, at most `limit`. */
  forgetKeptTrustLists(before: Date, limit: number): Promise<number>;
};
