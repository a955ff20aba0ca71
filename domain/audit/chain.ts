import { type Actor, type AuditChange, type AuditEntry, type EntryReference, nameOf, SERVICE_SCOPE, SYSTEM } from './audit-entry.ts';
import type { Macs, MacVerdict } from './macs.ts';

/** The newest entry of a chain, under a code of its own: without it nobody would miss entries taken off the end. */
export type AuditHead = {
  readonly sequence: number;
  /** Of the newest entry; empty before the first. */
  readonly hash: string;
  /** Over all of it, so that an older head cannot be made out of an older entry. */
  readonly seal: string;
};

/** A chain as a writer finds it. */
export type FoundChain = {
  readonly head: AuditHead | undefined;
  /** The highest sequence that an entry has; 0 without any. */
  readonly lastSequence: number;
};

/** What is to be written, by whom. */
export type Attributed = { readonly by: Actor; readonly at: Date; readonly change: AuditChange; readonly of?: EntryReference };

/** What every hash of an entry covers: all of it, its place, and through the hash before it all before it. */
function entryText(scope: string, entry: Omit<AuditEntry, 'hash'>, previous: string): string {
  const { sequence, at, actor, action, kind, target, detail } = entry;
  return JSON.stringify(['vidimus audit entry 1', scope, sequence, at.getTime(), actor, action, kind, target, detail, previous]);
}

function headText(scope: string, { sequence, hash }: Omit<AuditHead, 'seal'>): string {
  return JSON.stringify(['vidimus audit head 1', scope, sequence, hash]);
}

export function sealHead(macs: Macs, scope: string, head: Omit<AuditHead, 'seal'>): AuditHead {
  return { ...head, seal: macs.make(headText(scope, head)) };
}

/** A head is as new as its chain, so that no former secret seals one: who found it could alter the newest entries. */
export function verifyHead(macs: Macs, scope: string, head: AuditHead): MacVerdict {
  return macs.checkPresent(headText(scope, head), head.seal);
}

/** @param previous hash of the entry before it; empty for the first. */
export function verifyEntry(macs: Macs, scope: string, entry: AuditEntry, previous: string): MacVerdict {
  return macs.check(entryText(scope, entry, previous), entry.hash);
}

export type Extension = { readonly entries: readonly AuditEntry[]; readonly head: AuditHead };

/**
 * Adds entries to a chain. One that somebody else wrote to is gone on with, so that nobody can stop the
 * administration by it, but not without an entry that says so and that cannot be taken away unseen.
 */
export function extend(macs: Macs, scope: string, found: FoundChain, additions: readonly Attributed[]): Extension {
  const [first] = additions;
  if (first === undefined) throw new Error('Nothing is no addition.');
  const settled = settle(macs, scope, found, first.at);
  const added = append(macs, scope, settled.head, additions);
  return { entries: [...settled.entries, ...added.entries], head: added.head };
}

/** @returns the head of a chain that is as it should be, without an entry; else with the entry that says it is not. */
export function settle(macs: Macs, scope: string, found: FoundChain, at: Date): Extension {
  const fault = findHeadProblem(macs, scope, found);
  const { sequence = 0, hash = '' } = found.head ?? {};
  const end = { sequence: Math.max(sequence, found.lastSequence), hash };
  if (fault !== undefined) return append(macs, scope, end, [{ by: SYSTEM, at, change: brokenBy(fault) }]);
  return { entries: [], head: found.head ?? sealHead(macs, scope, end) };
}

/**
 * The first entry of the service's chain, before anything else is written: so a chain without entries is one that somebody emptied.
 * @param tenants how many there are already. Only a database from before the log has any.
 */
export function begin(macs: Macs, tenants: number, at: Date): Extension {
  const changes = [{ member: 'tenants', after: tenants }];
  const change = { action: 'begun', kind: 'audit-log', target: 'chain', changes } as const;
  return append(macs, SERVICE_SCOPE, { sequence: 0, hash: '' }, [{ by: SYSTEM, at, change }]);
}

/** Goes on from a head that is known to be sound. */
export function append(macs: Macs, scope: string, after: Omit<AuditHead, 'seal'>, additions: readonly Attributed[]): Extension {
  let { sequence, hash } = after;
  const entries = additions.map(({ by, at, change: { changes, ...rest }, of }) => {
    const requestId = by === SYSTEM ? undefined : by.requestId;
    const detail = JSON.stringify({ changes, requestId, of });
    const entry = { ...rest, sequence: ++sequence, at, actor: nameOf(by), detail };
    hash = macs.make(entryText(scope, entry, hash));
    return { ...entry, hash };
  });
  return { entries, head: sealHead(macs, scope, { sequence, hash }) };
}

/** @returns what is wrong with the end of a chain, or undefined when a writer may simply go on. */
export function findHeadProblem(macs: Macs, scope: string, { head, lastSequence }: FoundChain): string | undefined {
  if (head === undefined && lastSequence > 0) return 'the head is missing';
  // The chain of a tenant begins with its first change, that of the service before everything else.
  if (head === undefined) return scope === SERVICE_SCOPE ? 'all entries are missing' : undefined;
  const verdict = verifyHead(macs, scope, head);
  if (verdict === 'unknown_key') return 'the head is under another MASTER_SECRET';
  if (verdict === 'forged') return 'the head was altered';
  if (lastSequence > head.sequence) return 'there are entries after the head';
  return lastSequence < head.sequence ? 'the newest entries are missing' : undefined;
}

function brokenBy(fault: string): AuditChange {
  return { action: 'broken', kind: 'audit-log', target: 'chain', changes: [{ member: 'head', before: fault }] };
}
