import { type AuditEntry, detailOf, SERVICE_SCOPE } from '../../domain/audit/audit-entry.ts';
import type { AuditHead } from '../../domain/audit/chain.ts';
import type { Macs } from '../../domain/audit/macs.ts';
import { CHAIN_START, type ChainFault, type Progress, verifyEnd, verifyEntries } from '../../domain/audit/verify-entries.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { AuditLog, AuditQuery } from '../ports/repositories.ts';
import type { Store } from '../ports/store.ts';
import { type Anchor, type Beginning, type ChainReport, findAnchorMismatch, findTruncation, withPruningWarning } from './chain-reports.ts';
import { prunedUntil } from './pruned-until.ts';

export const BATCH = 500;
/** Smaller batches while the service runs, since SQLite answers on the thread that serves requests. */
const BATCH_WHILE_SERVING = 100;

export type ReportProgress = (scope: string, sequence: number) => void;

export type ChainPiece = ChainReport & {
  /** True at the end of the chain, or after a fault. */
  readonly isOver: boolean;
  /** Sequence of the last entry according to the head. */
  readonly length: number;
};

/** Verifies one chain of the audit log, by itself and against the entries that the service's chain repeats. Read-only. */
export class ChainVerifier {
  readonly #store: Store;
  readonly #macs: Macs;

  constructor({ store, macs }: { readonly store: Store; readonly macs: Macs }) {
    this.#store = store;
    this.#macs = macs;
  }

  /** @param anchor an entry that an operator recorded elsewhere. */
  async verifyWhole(scope: string, anchor?: Anchor, onProgress: ReportProgress = () => {}): Promise<ChainReport> {
    const { isOver: _, length: __, ...report } = await this.#walk(scope, { anchor, onProgress });
    return report;
  }

  /** @param after progress of earlier pieces. @param maxEntries number of entries of this one. */
  verifyPiece(scope: string, after: Progress | undefined, maxEntries: number): Promise<ChainPiece> {
    return this.#walk(scope, { after, most: maxEntries, batch: BATCH_WHILE_SERVING });
  }

  async readBeginning(): Promise<Beginning> {
    const [firstEntry] = await this.#store.forService(({ audit }) => audit.list({ ascending: true, limit: 1 }));
    if (firstEntry === undefined) return { isEmpty: true, olderTenants: 0 };
    if (firstEntry.action !== 'begun') return { isEmpty: false, olderTenants: Number.POSITIVE_INFINITY };
    return { isEmpty: false, olderTenants: Number(detailOf(firstEntry).changes[0]?.after), at: firstEntry.at };
  }

  /** The newest entry of the service's chain about a tenant itself. */
  async entryOf(tenantId: string, query: Partial<AuditQuery>): Promise<AuditEntry | undefined> {
    const entryQuery = { kind: 'tenant', target: tenantId, ...query, limit: 1 } as const;
    return (await this.#store.forService(({ audit }) => audit.list(entryQuery)))[0];
  }

  async #walk(scope: string, { anchor, ...options }: VerificationOptions & { readonly anchor?: Anchor | undefined }) {
    const expectedAnchors = anchor === undefined ? [] : [anchor];
    if (scope === SERVICE_SCOPE) return this.#verifyFrom(scope, CHAIN_START, expectedAnchors, options);
    const anchors = [...expectedAnchors, ...(await this.#readRepeatedEntries(scope))];
    for (let start = await prunedUntil(this.#store, scope); ; ) {
      const report = await this.#verifyFrom(scope, start, anchors, options);
      if (report.fault === undefined) return { ...report, ...withPruningWarning(report, start, anchor) };
      // Entries may have been pruned while they were read.
      const currentStart = await prunedUntil(this.#store, scope);
      if (currentStart.sequence === start.sequence) return report;
      start = currentStart;
    }
  }

  /** Entries of a tenant that the chain of the service repeats: its creation, and the last change of the tenant. */
  async #readRepeatedEntries(tenantId: string): Promise<Anchor[]> {
    const [creation, latest] = [await this.entryOf(tenantId, { action: 'created' }), await this.entryOf(tenantId, {})];
    if (latest?.action === 'removed') return [];
    return [creation, latest].flatMap((entry) => (entry && detailOf(entry).of) ?? []);
  }

  /** @param prunedEnd the last pruned entry. */
  async #verifyFrom(
    scope: string,
    prunedEnd: Progress,
    anchors: readonly Anchor[],
    { after = prunedEnd, most: maxEntries = Number.POSITIVE_INFINITY, batch = BATCH, onProgress = () => {} }: VerificationOptions,
  ): Promise<ChainPiece> {
    const start = after.sequence > prunedEnd.sequence ? after : prunedEnd;
    // The head is read first, so that entries written meanwhile do not look like a manipulated head.
    const head = await this.#read(scope, (log) => log.head());
    const headSequence = head?.sequence ?? Number.MAX_SAFE_INTEGER;
    const lastSequence = Math.min(headSequence, start.sequence + maxEntries);
    const finish = (end: Progress, fault?: ChainFault): ChainPiece => ({
      scope,
      end,
      ...defined({ fault }),
      isOver: true,
      length: head?.sequence ?? end.sequence,
    });
    let end = start;
    // Entries that an earlier piece verified were removed.
    const truncation = lastSequence < start.sequence ? findTruncation([start], { ...start, sequence: lastSequence }) : undefined;
    const mismatch = findAnchorMismatch(anchors, [start], start) ?? truncation;
    if (mismatch !== undefined) return finish(CHAIN_START, mismatch);
    while (end.sequence < lastSequence) {
      const page = await this.#page(scope, end.sequence, Math.min(lastSequence, end.sequence + batch));
      if (page.length === 0) break;
      const { progress, fault } = verifyEntries(this.#macs, scope, end, page);
      const pageFault = findAnchorMismatch(anchors, page, progress) ?? fault;
      if (pageFault !== undefined) return finish(progress, pageFault);
      end = progress;
      onProgress(scope, end.sequence);
      // Yields to other requests, also if the database answers synchronously.
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (end.sequence === lastSequence && lastSequence < headSequence)
      return { scope, end, isOver: false, length: head?.sequence ?? end.sequence };
    return finish(end, verifyEnd(this.#macs, scope, end, head) ?? findTruncation(anchors, end) ?? (await this.#faultAfter(scope, head)));
  }

  /** A fault if entries exist after the head, unless they were written since it was read. */
  async #faultAfter(scope: string, head: AuditHead | undefined): Promise<ChainFault | undefined> {
    const headSequence = head?.sequence ?? 0;
    const [unexpectedEntry] = await this.#page(scope, headSequence, Number.MAX_SAFE_INTEGER);
    if (unexpectedEntry === undefined) return undefined;
    const currentHead = await this.#read(scope, (log) => log.head());
    if (currentHead !== undefined && currentHead.sequence > headSequence) return undefined;
    const message = `entries exist after ${headSequence}, where the chain ends by its head`;
    return { sequence: headSequence + 1, kind: 'head_outdated', message };
  }

  async #page(scope: string, after: number, upTo: number): Promise<AuditEntry[]> {
    const limit = Math.min(BATCH, upTo - after);
    return this.#read(scope, (log) => log.list({ ascending: true, after, limit }));
  }

  #read<T>(scope: string, read: (log: Pick<AuditLog, 'list' | 'head'>) => Promise<T>): Promise<T> {
    return scope === SERVICE_SCOPE
      ? this.#store.forService(({ audit }) => read(audit))
      : this.#store.forTenant(scope as TenantId, ({ audit }) => read(audit));
  }
}

type VerificationOptions = {
  readonly after?: Progress | undefined;
  readonly most?: number;
  /** Entries per read; `BATCH` by default. */
  readonly batch?: number;
  readonly onProgress?: ReportProgress;
};
