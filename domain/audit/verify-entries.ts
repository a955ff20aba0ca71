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

/** What somebody did to a chain, as far as it can be told from what is left. */
export type ChainFault = {
  /** The first entry that is not as it was, or not there. */
  readonly sequence: number;
  readonly kind: (typeof FAULT_KINDS)[number];
  readonly message: string;
};

/** How far a chain is known to be whole. */
export type Progress = { readonly sequence: number; readonly hash: string };

export const START: Progress = { sequence: 0, hash: '' };

const OTHER_SECRET = 'was made under a MASTER_SECRET that is not configured; list the former one behind the present';

/** Every start begins this chain before anything else is written. */
const EMPTIED: ChainFault = {
  sequence: 1,
  kind: 'removed',
  message:
    'the log of the service is empty, although every start of the service begins it: somebody emptied it, or no ' +
    'service of this release was started on this database yet',
};

/** @param entries in their order, those that follow `after`. */
export function verifyEntries(
  macs: Macs,
  scope: string,
  after: Progress,
  entries: readonly AuditEntry[],
): { readonly progress: Progress; readonly fault?: ChainFault } {
  let progress = after;
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
  { sequence: last, hash }: Progress,
  entry: AuditEntry,
  neighbours: readonly AuditEntry[],
): ChainFault | undefined {
  const sequence = last + 1;
  if (entry.sequence !== sequence) {
    const until = entry.sequence - 1;
    const which = until === sequence ? 'is missing' : `and all up to ${until} are missing`;
    return { sequence, kind: 'removed', message: `entry ${sequence} ${which}` };
  }
  // What a writer found broken it went on with from whatever it found.
  const verdicts = [hash, ''].slice(0, entry.action === 'broken' ? 2 : 1).map((previous) => verifyEntry(macs, scope, entry, previous));
  if (verdicts.includes('genuine')) return entry.action === 'broken' ? noted(entry) : undefined;
  if (verdicts.includes('unknown_key')) return { sequence, kind: 'unknown_key', message: `entry ${sequence} ${OTHER_SECRET}` };
  if (isMoved(macs, scope, entry, neighbours)) return { sequence, kind: 'reordered', message: `entry ${sequence} stood in another place` };
  return {
    sequence,
    kind: 'altered',
    message: `entry ${sequence} was altered or put there by somebody else, or one before it was taken away`,
  };
}

function noted(entry: AuditEntry): ChainFault {
  const found = detailOf(entry).changes[0]?.before;
  const { sequence } = entry;
  return {
    sequence,
    kind: 'noted',
    message: `before entry ${sequence} the service found that ${String(found)}`,
  };
}

/** Whether an entry is genuine in the place of one of those around it, also of the one that it changed places with. */
function isMoved(macs: Macs, scope: string, entry: AuditEntry, neighbours: readonly AuditEntry[]): boolean {
  return neighbours.some((other, index) =>
    [neighbours[index - 1]?.hash ?? '', other.hash].some(
      (previous) => verifyEntry(macs, scope, { ...entry, sequence: other.sequence }, previous) === 'genuine',
    ),
  );
}

/** @param end how far the entries go that the head is about. */
export function verifyEnd(macs: Macs, scope: string, end: Progress, head: AuditHead | undefined): ChainFault | undefined {
  const sequence = end.sequence + 1;
  if (head === undefined) {
    if (end.sequence === 0) return scope === SERVICE_SCOPE ? EMPTIED : undefined;
    return { sequence: end.sequence, kind: 'head_altered', message: 'the head of the chain is missing' };
  }
  const verdict = verifyHead(macs, scope, head);
  if (verdict === 'unknown_key') return { sequence, kind: 'unknown_key', message: `the head ${OTHER_SECRET}` };
  if (verdict === 'forged') {
    return {
      sequence,
      kind: 'head_altered',
      message: `the head was altered; entries after ${end.sequence} may be missing`,
    };
  }
  if (head.sequence > end.sequence) {
    const which = head.sequence === sequence ? 'is missing' : `and all up to ${head.sequence} are missing`;
    return { sequence, kind: 'truncated', message: `entry ${sequence} ${which} at the end` };
  }
  if (head.hash === end.hash) return undefined;
  return {
    sequence: end.sequence,
    kind: 'head_altered',
    message: `the head is about another entry ${end.sequence}`,
  };
}
