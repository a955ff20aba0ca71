import type { AuditEntry } from '../../domain/audit/audit-entry.ts';
import { CHAIN_START, type ChainFault, type Progress } from '../../domain/audit/verify-entries.ts';

/** An expected entry of a chain. */
export type Anchor = Progress;

export type ChainReport = {
  /** The tenant, or `SERVICE_SCOPE`. */
  readonly scope: string;
  /** Progress of the verification: the head of the chain, unless there is a fault. */
  readonly end: Progress;
  readonly fault?: ChainFault;
  /** A notice about a chain without fault that an operator has to judge. */
  readonly warning?: string;
};

export type Beginning = {
  /** An empty chain cannot be compared with other chains. */
  readonly isEmpty: boolean;
  /** Maximum number of tenants without an entry of their creation; infinite if the chain does not state it. */
  readonly olderTenants: number;
  readonly at?: Date;
};

/** A chain that is intact can still differ from the expected one. @param verifiedUntil progress of `page`. */
export function findAnchorMismatch(anchors: readonly Anchor[], page: readonly Progress[], verifiedUntil: Progress): ChainFault | undefined {
  const mismatch = page.find(({ sequence, hash }) =>
    anchors.some((anchor) => sequence <= verifiedUntil.sequence && anchor.sequence === sequence && anchor.hash !== hash),
  );
  if (mismatch === undefined) return undefined;
  const { sequence } = mismatch;
  return { sequence, kind: 'unexpected', message: `entry ${sequence} differs from the expected entry` };
}

export function findTruncation(anchors: readonly Anchor[], end: Progress): ChainFault | undefined {
  const missingAnchor = anchors.find(({ sequence }) => sequence > end.sequence);
  if (missingAnchor === undefined) return undefined;
  const sequence = end.sequence + 1;
  const message = `the chain ends with ${end.sequence}, but it had an entry ${missingAnchor.sequence}`;
  return { sequence, kind: 'truncated', message };
}

/** Adds a warning if the expected entry was pruned, since it proves nothing about the remaining entries. */
export function withPruningWarning(report: ChainReport, start: Progress, expected: Anchor | undefined): ChainReport {
  if (expected === undefined || expected.sequence >= start.sequence) return report;
  const { sequence } = expected;
  const warning =
    `entry ${sequence} was pruned, so it cannot be compared with the expected entry; the chain is intact from entry ` +
    `${start.sequence + 1} on, where it begins by the log of the service`;
  return { ...report, warning };
}

export function warningOf({ olderTenants, at: readTime }: Beginning): string | undefined {
  if (readTime === undefined || olderTenants === 0) return undefined;
  const countText = olderTenants === 1 ? 'was 1 tenant' : `were ${olderTenants} tenants`;
  return (
    `the log begins on ${readTime.toISOString()}, when there ${countText} already. This is only correct if the service was updated ` +
    'on that day from a release without an audit log; otherwise the log was emptied before'
  );
}

export function tenantMissingFault(latest: AuditEntry | undefined): ChainFault {
  const lastEntryNote = latest === undefined ? '' : `, whose last entry about it is ${latest.sequence}`;
  const message = `the tenant does not exist, and the log of the service contains no removal of it${lastEntryNote}`;
  return { sequence: 1, kind: 'removed', message };
}

export function unknownOriginFault(): ChainFault {
  const message = 'the tenant exists, but the log of the service contains no creation of it, although the log is older';
  return { sequence: 1, kind: 'unexpected', message };
}

export function createdTwiceFault({ sequence }: AuditEntry): ChainFault {
  const message = `the tenant was created again by entry ${sequence} of the log of the service, but was not removed before`;
  return { sequence: 1, kind: 'unexpected', message };
}

export function missingChainReport(scope: string, { sequence }: Anchor): ChainReport {
  const message = `the chain does not exist, but it had an entry ${sequence}`;
  return { scope, end: CHAIN_START, fault: { sequence: 1, kind: 'removed', message } };
}
