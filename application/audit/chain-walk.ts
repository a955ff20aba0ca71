import { type AuditEntry, detailOf, SERVICE_SCOPE } from '../../domain/audit/audit-entry.ts';
import type { AuditHead } from '../../domain/audit/chain.ts';
import type { Macs } from '../../domain/audit/macs.ts';
import { type ChainFault, type Progress, START, verifyEnd, verifyEntries } from '../../domain/audit/verify-entries.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { AuditLog, AuditQuery } from '../ports/repositories.ts';
import type { Store } from '../ports/store.ts';
import { type Anchor, type Beginning, type ChainReport, lost, short, withoutPruned } from './chain-reports.ts';
import { prunedUntil } from './pruned-until.ts';

/** Entries in memory at a time. */
export const BATCH = 500;
/** The same beside requests: SQLite answers on the thread that serves all others, too. */
const BATCH_BESIDE_OTHERS = 100;

/** Is told how far the present chain is. */
export type Progressed = (scope: string, sequence: number) => void;

export type ChainPiece = ChainReport & {
  /** Whether the end of the chain was reached, or a fault. */
  readonly isOver: boolean;
  /** The last entry that the head speaks of. */
  readonly length: number;
};

/** Walks one chain of the audit log, by itself and by what the chain of the service repeats of it. It only reads. */
export class ChainWalk {
  readonly #store: Store;
  readonly #macs: Macs;

  constructor({ store, macs }: { readonly store: Store; readonly macs: Macs }) {
    this.#store = store;
    this.#macs = macs;
  }

  /** @param anchor an entry that somebody kept elsewhere. */
  async whole(scope: string, anchor?: Anchor, onProgress: Progressed = () => {}): Promise<ChainReport> {
    const { isOver: _, length: __, ...report } = await this.#walk(scope, { anchor, onProgress });
    return report;
  }

  /** @param after how far an earlier piece was whole. @param most entries of this one. */
  piece(scope: string, after: Progress | undefined, most: number): Promise<ChainPiece> {
    return this.#walk(scope, { after, most, batch: BATCH_BESIDE_OTHERS });
  }

  /** How the chain of the service begins. */
  async beginning(): Promise<Beginning> {
    const [first] = await this.#store.forService(({ audit }) => audit.list({ ascending: true, limit: 1 }));
    if (first === undefined) return { isEmpty: true, olderTenants: 0 };
    if (first.action !== 'begun') return { isEmpty: false, olderTenants: Number.POSITIVE_INFINITY };
    return { isEmpty: false, olderTenants: Number(detailOf(first).changes[0]?.after), at: first.at };
  }

  /** The newest entry of the service's chain about a tenant itself. */
  async entryOf(tenantId: string, query: Partial<AuditQuery>): Promise<AuditEntry | undefined> {
    const wanted = { kind: 'tenant', target: tenantId, ...query, limit: 1 } as const;
    return (await this.#store.forService(({ audit }) => audit.list(wanted)))[0];
  }

  async #walk(scope: string, { anchor, ...how }: Walking & { readonly anchor?: Anchor | undefined }) {
    const known = anchor === undefined ? [] : [anchor];
    if (scope === SERVICE_SCOPE) return this.#from(scope, START, known, how);
    const anchors = [...known, ...(await this.#repeated(scope))];
    for (let start = await prunedUntil(this.#store, scope); ; ) {
      const report = await this.#from(scope, start, anchors, how);
      if (report.fault === undefined) return { ...report, ...withoutPruned(report, start, anchor) };
      // Entries may have gone while they were read.
      const now = await prunedUntil(this.#store, scope);
      if (now.sequence === start.sequence) return report;
      start = now;
    }
  }

  /** Entries of a tenant that the chain of the service repeats: its creation, and the last change of the tenant. */
  async #repeated(tenantId: string): Promise<Anchor[]> {
    const [creation, latest] = [await this.entryOf(tenantId, { action: 'created' }), await this.entryOf(tenantId, {})];
    if (latest?.action === 'removed') return [];
    return [creation, latest].flatMap((entry) => (entry && detailOf(entry).of) ?? []);
  }

  /** @param first the last entry that is kept no longer. */
  async #from(
    scope: string,
    first: Progress,
    anchors: readonly Anchor[],
    { after = first, most = Number.POSITIVE_INFINITY, batch = BATCH, onProgress = () => {} }: Walking,
  ): Promise<ChainPiece> {
    const start = after.sequence > first.sequence ? after : first;
    // First of all, so that what is written meanwhile does not look like a head that was put back.
    const head = await this.#read(scope, (log) => log.head());
    const wanted = head?.sequence ?? Number.MAX_SAFE_INTEGER;
    const until = Math.min(wanted, start.sequence + most);
    const over = (end: Progress, fault?: ChainFault): ChainPiece => ({
      scope,
      end,
      ...defined({ fault }),
      isOver: true,
      length: head?.sequence ?? end.sequence,
    });
    let end = start;
    // Entries that were whole a piece ago are gone.
    const cut = until < start.sequence ? short([start], { ...start, sequence: until }) : undefined;
    const other = lost(anchors, [start], start) ?? cut;
    if (other !== undefined) return over(START, other);
    while (end.sequence < until) {
      const page = await this.#page(scope, end.sequence, Math.min(until, end.sequence + batch));
      if (page.length === 0) break;
      const { progress, fault } = verifyEntries(this.#macs, scope, end, page);
      const wrong = lost(anchors, page, progress) ?? fault;
      if (wrong !== undefined) return over(progress, wrong);
      end = progress;
      onProgress(scope, end.sequence);
      // Others come in between, also where the database answers at once.
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (end.sequence === until && until < wanted) return { scope, end, isOver: false, length: head?.sequence ?? end.sequence };
    return over(end, verifyEnd(this.#macs, scope, end, head) ?? short(anchors, end) ?? (await this.#faultAfter(scope, head)));
  }

  /** Entries that the head does not know of, unless they were written since it was read. */
  async #faultAfter(scope: string, head: AuditHead | undefined): Promise<ChainFault | undefined> {
    const known = head?.sequence ?? 0;
    const [beyond] = await this.#page(scope, known, Number.MAX_SAFE_INTEGER);
    if (beyond === undefined) return undefined;
    const now = await this.#read(scope, (log) => log.head());
    if (now !== undefined && now.sequence > known) return undefined;
    const message = `there are entries after ${known}, where the head says that the chain ends`;
    return { sequence: known + 1, kind: 'head_outdated', message };
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

type Walking = {
  readonly after?: Progress | undefined;
  readonly most?: number;
  /** Entries that are read and verified at a time; `BATCH` unless stated. */
  readonly batch?: number;
  readonly onProgress?: Progressed;
};
