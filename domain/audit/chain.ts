import { type Actor, type AuditChange, type AuditEntry, type EntryReference, nameOf, SERVICE_SCOPE, SYSTEM } from './audit-entry.ts';
import type { Macs, MacVerdict } from './macs.ts';

/** The newest entry of a chain with a separate MAC, which detects the removal of entries at the end. */
export type AuditHead = {
  readonly sequence: number;
  /** Hash of the newest entry; empty before the first one. */
  readonly hash: string;
  /** MAC over the whole head, so that an older head cannot be reconstructed from an older entry. */
  readonly seal: string;
};

export type ChainState = {
  readonly head: AuditHead | undefined;
  /** The highest sequence of an entry; 0 without entries. */
  readonly lastSequence: number;
};

export type AttributedChange = { readonly by: Actor; readonly at: Date; readonly change: AuditChange; readonly of?: EntryReference };

/** The text that an entry's hash covers: its content, its position, and through the previous hash all earlier entries. */
function entryText(scope: string, entry: Omit<AuditEntry, 'hash'>, previous: string): string {
  const { sequence, at: timestamp, actor, action, kind, target, detail } = entry;
  return JSON.stringify(['vidimus audit entry 1', scope, sequence, timestamp.getTime(), actor, action, kind, target, detail, previous]);
}

function headText(scope: string, { sequence, hash }: Omit<AuditHead, 'seal'>): string {
  return JSON.stringify(['vidimus audit head 1', scope, sequence, hash]);
}

export function sealHead(macs: Macs, scope: string, head: Omit<AuditHead, 'seal'>): AuditHead {
  return { ...head, seal: macs.make(headText(scope, head)) };
}

/** A head is always current, so previous secrets are not accepted: an attacker with one could alter the newest entries. */
export function verifyHead(macs: Macs, scope: string, head: AuditHead): MacVerdict {
  return macs.checkPresent(headText(scope, head), head.seal);
}

/** @param previous hash of the entry before it; empty for the first. */
export function verifyEntry(macs: Macs, scope: string, entry: AuditEntry, previous: string): MacVerdict {
  return macs.check(entryText(scope, entry, previous), entry.hash);
}

export type ChainExtension = { readonly entries: readonly AuditEntry[]; readonly head: AuditHead };

/**
 * Appends entries to a chain. A manipulated chain is continued, so that an attacker cannot block the administration, but with an entry
 * about it that cannot be removed unnoticed.
 */
export function extendChain(macs: Macs, scope: string, state: ChainState, additions: readonly AttributedChange[]): ChainExtension {
  const [firstAddition] = additions;
  if (firstAddition === undefined) throw new Error('Nothing is no addition.');
  const verified = verifyOrRecordBreak(macs, scope, state, firstAddition.at);
  const appended = appendEntries(macs, scope, verified.head, additions);
  return { entries: [...verified.entries, ...appended.entries], head: appended.head };
}

/** @returns the head of an intact chain without a new entry; otherwise with an entry about the manipulation. */
export function verifyOrRecordBreak(macs: Macs, scope: string, state: ChainState, timestamp: Date): ChainExtension {
  const fault = findHeadProblem(macs, scope, state);
  const { sequence = 0, hash = '' } = state.head ?? {};
  const end = { sequence: Math.max(sequence, state.lastSequence), hash };
  if (fault !== undefined) return appendEntries(macs, scope, end, [{ by: SYSTEM, at: timestamp, change: brokenChange(fault) }]);
  return { entries: [], head: state.head ?? sealHead(macs, scope, end) };
}

/**
 * The first entry of the service's chain, before any other write: a chain without entries was therefore emptied by an attacker.
 * @param tenants number of existing tenants; only databases from before the log have any.
 */
export function beginChain(macs: Macs, tenants: number, timestamp: Date): ChainExtension {
  const changes = [{ member: 'tenants', after: tenants }];
  const change = { action: 'begun', kind: 'audit-log', target: 'chain', changes } as const;
  return appendEntries(macs, SERVICE_SCOPE, { sequence: 0, hash: '' }, [{ by: SYSTEM, at: timestamp, change }]);
}

/** Appends to a verified head. */
export function appendEntries(
  macs: Macs,
  scope: string,
  head: Omit<AuditHead, 'seal'>,
  additions: readonly AttributedChange[],
): ChainExtension {
  let { sequence, hash } = head;
  const entries = additions.map(({ by, at: timestamp, change: { changes, ...properties }, of }) => {
    const requestId = by === SYSTEM ? undefined : by.requestId;
    const detail = JSON.stringify({ changes, requestId, of });
    const entry = { ...properties, sequence: ++sequence, at: timestamp, actor: nameOf(by), detail };
    hash = macs.make(entryText(scope, entry, hash));
    return { ...entry, hash };
  });
  return { entries, head: sealHead(macs, scope, { sequence, hash }) };
}

/** @returns the problem at the end of a chain, or undefined for an intact one. */
export function findHeadProblem(macs: Macs, scope: string, { head, lastSequence }: ChainState): string | undefined {
  if (head === undefined && lastSequence > 0) return 'the head is missing';
  // The chain of a tenant begins with its first change, the chain of the service before every other write.
  if (head === undefined) return scope === SERVICE_SCOPE ? 'all entries are missing' : undefined;
  const verdict = verifyHead(macs, scope, head);
  if (verdict === 'unknown_key') return 'the head was written under another MASTER_SECRET';
  if (verdict === 'forged') return 'the head was altered';
  if (lastSequence > head.sequence) return 'entries exist after the head';
  return lastSequence < head.sequence ? 'the newest entries are missing' : undefined;
}

function brokenChange(fault: string): AuditChange {
  return { action: 'broken', kind: 'audit-log', target: 'chain', changes: [{ member: 'head', before: fault }] };
}
