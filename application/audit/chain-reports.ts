import type { AuditEntry } from '../../domain/audit/audit-entry.ts';
import { type ChainFault, type Progress, START } from '../../domain/audit/verify-entries.ts';

/** An entry that a chain is known to have had. */
export type Anchor = Progress;

export type ChainReport = {
  /** The tenant, or `SERVICE_SCOPE`. */
  readonly scope: string;
  /** How far the chain is whole: its head, unless there is a fault. */
  readonly end: Progress;
  readonly fault?: ChainFault;
  /** What only an operator can judge, of a chain without a fault. */
  readonly warning?: string;
};

/** How the chain of the service begins. */
export type Beginning = {
  /** Without entries there is nothing that other chains could be held against. */
  readonly isEmpty: boolean;
  /** Tenants that may be there although no entry says who made them; any number where the chain does not say. */
  readonly olderTenants: number;
  readonly at?: Date;
};

/** A whole chain can still be another one than it was. @param until how far `page` was found whole. */
export function lost(anchors: readonly Anchor[], page: readonly Progress[], until: Progress): ChainFault | undefined {
  const other = page.find(({ sequence, hash }) =>
    anchors.some((anchor) => sequence <= until.sequence && anchor.sequence === sequence && anchor.hash !== hash),
  );
  if (other === undefined) return undefined;
  const { sequence } = other;
  return { sequence, kind: 'unexpected', message: `entry ${sequence} is another one than was expected` };
}

export function short(anchors: readonly Anchor[], end: Progress): ChainFault | undefined {
  const beyond = anchors.find(({ sequence }) => sequence > end.sequence);
  if (beyond === undefined) return undefined;
  const sequence = end.sequence + 1;
  const message = `the chain ends with ${end.sequence}, but it has had an entry ${beyond.sequence}`;
  return { sequence, kind: 'truncated', message };
}

/** What somebody kept elsewhere of an entry that is kept here no longer says nothing about the rest. */
export function withoutPruned(report: ChainReport, start: Progress, expected: Anchor | undefined): ChainReport {
  if (expected === undefined || expected.sequence >= start.sequence) return report;
  const { sequence } = expected;
  const warning =
    `entry ${sequence} is kept no longer, so it cannot be held against what was expected; the chain is whole from entry ` +
    `${start.sequence + 1} on, as the log of the service says that it begins`;
  return { ...report, warning };
}

export function warningOf({ olderTenants, at }: Beginning): string | undefined {
  if (at === undefined || olderTenants === 0) return undefined;
  const were = olderTenants === 1 ? 'was 1 tenant' : `were ${olderTenants} tenants`;
  return (
    `the log begins on ${at.toISOString()}, when there ${were} already. So it has to be where the service was updated ` +
    'that day from a release without an audit log; otherwise somebody emptied the log before that'
  );
}

export function tenantGone(latest: AuditEntry | undefined): ChainFault {
  const known = latest === undefined ? '' : `, which speaks of it last in entry ${latest.sequence}`;
  const message = `there is no such tenant, and nobody removed it by the log of the service${known}`;
  return { sequence: 1, kind: 'removed', message };
}

export function unknownOrigin(): ChainFault {
  const message = 'there is such a tenant, but nobody made it by the log of the service, and that is not older';
  return { sequence: 1, kind: 'unexpected', message };
}

export function madeTwice({ sequence }: AuditEntry): ChainFault {
  const message = `the tenant was made again by entry ${sequence} of the log of the service, but was not removed before`;
  return { sequence: 1, kind: 'unexpected', message };
}

export function missing(scope: string, { sequence }: Anchor): ChainReport {
  const message = `there is no such chain, but it has had an entry ${sequence}`;
  return { scope, end: START, fault: { sequence: 1, kind: 'removed', message } };
}
