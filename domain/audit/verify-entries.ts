import { type AuditEntry, detailOf, SERVICE_SCOPE } from './audit-entry.ts';
import { type AuditHead, verifyEntry, verifyHead } from './chain.ts';
import type { Macs } from './macs.ts';

export const FAULT_KINDS = [
  'altered',
  'reordered',
  'removed',
  'truncated',
  'head_altered',
  'head_outdated',
  'unknown_key',
  'noted',
  'unexpected',
] as const;

/** A manipulation of a chain, as far as it can be determined from the remaining entries. */
export type ChainFault = {
  /** The first altered or missing entry. */
  readonly sequence: number;
  readonly kind: (typeof FAULT_KINDS)[number];
  readonly message: string;
};

/** The verified part of a chain. */
export type Progress = { readonly sequence: number; readonly hash: string };

export const CHAIN_START: Progress = { sequence: 0, hash: '' };

const OTHER_SECRET = 'was written under a MASTER_SECRET that is not configured; list the former secret after the present one';

/** Every start of the service begins this chain before any other write. */
const EMPTY_LOG_FAULT: ChainFault = {
  sequence: 1,
  kind: 'removed',
  message:
    'the log of the service is empty, although every start of the service writes to it: it was emptied, or no ' +
    'service of this release was started on this database yet',
};

/** @param entries in their order, following `start`. */
export function verifyEntries(
  macs: Macs,
  scope: string,
  start: Progress,
  entries: readonly AuditEntry[],
): { readonly progress: Progress; readonly fault?: ChainFault } {
  let progress = start;
  for (const entry of entries) {
    const fault = findEntryProblem(macs, scope, progress, entry, entries);
    if (fault !== undefined) return { progress, fault };
    progress = { sequence: entry.sequence, hash: entry.hash };
  }
  return { progress };
}

function findEntryProblem(
  macs: Macs,
  scope: string,
  { sequence: lastSequence, hash }: Progress,
  entry: AuditEntry,
  neighbours: readonly AuditEntry[],
): ChainFault | undefined {
  const sequence = lastSequence + 1;
  if (entry.sequence !== sequence) {
    const lastMissing = entry.sequence - 1;
    const which = lastMissing === sequence ? 'is missing' : `and all up to ${lastMissing} are missing`;
    return { sequence, kind: 'removed', message: `entry ${sequence} ${which}` };
  }
  // A writer continued a manipulated chain from whatever it found.
  const verdicts = [hash, ''].slice(0, entry.action === 'broken' ? 2 : 1).map((previous) => verifyEntry(macs, scope, entry, previous));
  if (verdicts.includes('genuine')) return entry.action === 'broken' ? notedBreak(entry) : undefined;
  if (verdicts.includes('unknown_key')) return { sequence, kind: 'unknown_key', message: `entry ${sequence} ${OTHER_SECRET}` };
  if (isMovedEntry(macs, scope, entry, neighbours))
    return { sequence, kind: 'reordered', message: `entry ${sequence} was written at another position` };
  return { sequence, kind: 'altered', message: `entry ${sequence} was altered or inserted, or an entry before it was removed` };
}

function notedBreak(entry: AuditEntry): ChainFault {
  const problem = detailOf(entry).changes[0]?.before;
  const { sequence } = entry;
  return { sequence, kind: 'noted', message: `before entry ${sequence} the service found that ${String(problem)}` };
}

/** True if an entry is genuine at the position of a neighbour, including the entry that it was swapped with. */
function isMovedEntry(macs: Macs, scope: string, entry: AuditEntry, neighbours: readonly AuditEntry[]): boolean {
  return neighbours.some((neighbour, index) =>
    [neighbours[index - 1]?.hash ?? '', neighbour.hash].some(
      (previous) => verifyEntry(macs, scope, { ...entry, sequence: neighbour.sequence }, previous) === 'genuine',
    ),
  );
}

/** @param end of the entries that the head must match. */
export function verifyEnd(macs: Macs, scope: string, end: Progress, head: AuditHead | undefined): ChainFault | undefined {
  const sequence = end.sequence + 1;
  if (head === undefined) {
    if (end.sequence === 0) return scope === SERVICE_SCOPE ? EMPTY_LOG_FAULT : undefined;
    return { sequence: end.sequence, kind: 'head_altered', message: 'the head of the chain is missing' };
  }
  const verdict = verifyHead(macs, scope, head);
  if (verdict === 'unknown_key') return { sequence, kind: 'unknown_key', message: `the head ${OTHER_SECRET}` };
  if (verdict === 'forged') {
    return { sequence, kind: 'head_altered', message: `the head was altered; entries after ${end.sequence} may be missing` };
  }
  if (head.sequence > end.sequence) {
    const which = head.sequence === sequence ? 'is missing' : `and all up to ${head.sequence} are missing`;
    return { sequence, kind: 'truncated', message: `entry ${sequence} ${which} at the end` };
  }
  if (head.hash === end.hash) return undefined;
  return { sequence: end.sequence, kind: 'head_altered', message: `the head is about another entry ${end.sequence}` };
}
