import { type AuditEntry, detailOf, SERVICE_SCOPE } from '../../domain/audit/audit-entry.ts';
import type { AuditHead } from '../../domain/audit/chain.ts';
import {
  type ChainFault,
  checkEnd,
  checkEntries,
  type Progress,
  START,
} from '../../domain/audit/check-chain.ts';
import type { Macs } from '../../domain/audit/macs.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { AuditLog, AuditQuery } from '../ports/repositories.ts';
import type { Store } from '../ports/store.ts';
import {
  type Anchor,
  type Beginning,
  type ChainReport,
  lost,
  madeTwice,
  missing,
  short,
  tenantGone,
  unknownOrigin,
  warningOf,
  withoutPruned,
} from './chain-reports.ts';
import { prunedUntil } from './pruned-until.ts';

type Ports = { readonly store: Store; readonly macs: Macs };

/** Entries in memory at a time. */
const BATCH = 500;

/** Is told how far the present chain is. */
type Progressed = (scope: string, sequence: number) => void;

/** Walks the chains of the audit log and finds what was removed or altered. It may run beside the service. */
export class VerifyAuditLog {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /**
   * @param anchors entries that somebody kept elsewhere, by their chain.
   * @returns a report per chain, that of the service first.
   */
  async *execute(
    anchors: ReadonlyMap<string, Anchor> = new Map(),
    onProgress: Progressed = () => {},
  ): AsyncGenerator<ChainReport> {
    const beginning = await this.#beginning();
    const anchor = anchors.get(SERVICE_SCOPE);
    const report = await this.verify(SERVICE_SCOPE, anchor, onProgress);
    const warning = anchor === undefined ? warningOf(beginning) : undefined;
    yield report.fault === undefined && warning !== undefined ? { ...report, warning } : report;
    const seen = new Set<string>([SERVICE_SCOPE]);
    const next = (last: string) => this.#ports.store.forService(({ audit }) => audit.nextScope(last));
    let older = 0;
    for (let scope = await next(SERVICE_SCOPE); scope !== undefined; scope = await next(scope)) {
      seen.add(scope);
      const own = await this.verify(scope, anchors.get(scope), onProgress);
      const origin = beginning.isEmpty || own.fault !== undefined ? 'known' : await this.#origin(scope);
      if (origin === 'older') older++;
      const fault = origin === 'older' && older > beginning.olderTenants ? unknownOrigin() : origin;
      yield typeof fault === 'string' ? own : { ...own, fault };
    }
    for await (const gone of this.#gone(seen)) {
      seen.add(gone.scope);
      yield gone;
    }
    for (const [gone, kept] of anchors) if (!seen.has(gone)) yield missing(gone, kept);
  }

  async #beginning(): Promise<Beginning> {
    const { store } = this.#ports;
    const [first] = await store.forService(({ audit }) => audit.list({ ascending: true, limit: 1 }));
    if (first === undefined) return { isEmpty: true, olderTenants: 0 };
    if (first.action !== 'begun') return { isEmpty: false, olderTenants: Number.POSITIVE_INFINITY };
    return { isEmpty: false, olderTenants: Number(detailOf(first).changes[0]?.after), at: first.at };
  }

  /**
   * Whether a tenant came into being as the chain of the service says. Asked again before it is a fault: somebody may be
   * making or removing the tenant.
   * @returns `older` where no entry says who made it, as with tenants that are older than the log.
   */
  async #origin(tenantId: TenantId): Promise<ChainFault | 'known' | 'older'> {
    const first = await this.#originNow(tenantId);
    return first === 'known' ? first : this.#originNow(tenantId);
  }

  async #originNow(id: TenantId): Promise<ChainFault | 'known' | 'older'> {
    const { store } = this.#ports;
    const tenant = await store.forService(({ tenants }) => tenants.find(id));
    const latest = await this.#entryOf(id, {});
    const isRemoved = latest?.action === 'removed';
    if (tenant === undefined) return isRemoved ? 'known' : tenantGone(latest);
    const creation = await this.#entryOf(id, { action: 'created' });
    if (creation === undefined || isRemoved) {
      const [own] = await store.forTenant(id, ({ audit }) => audit.list({ ascending: true, limit: 1 }));
      const isOlder = !isRemoved && !(own?.action === 'created' && own.kind === 'tenant');
      return isOlder ? 'older' : unknownOrigin();
    }
    const former = await this.#entryOf(id, { after: creation.sequence });
    return former === undefined || former.action === 'removed' ? 'known' : madeTwice(creation);
  }

  /** Tenants that were made and not removed, and of which nothing is left. */
  async *#gone(seen: ReadonlySet<string>): AsyncGenerator<ChainReport> {
    const { store } = this.#ports;
    const query = { kind: 'tenant', action: 'created', ascending: true, limit: BATCH } as const;
    let after = 0;
    for (;;) {
      const page = await store.forService(({ audit }) => audit.list({ ...query, after }));
      for (const { target } of page) {
        if (seen.has(target)) continue;
        const origin = await this.#origin(target as TenantId);
        if (typeof origin !== 'string') yield { scope: target, end: START, fault: origin };
      }
      const last = page.at(-1);
      if (last === undefined) return;
      after = last.sequence;
    }
  }

  /** The newest entry of the service's chain about a tenant itself. */
  async #entryOf(tenantId: string, query: Partial<AuditQuery>): Promise<AuditEntry | undefined> {
    const wanted = { kind: 'tenant', target: tenantId, ...query, limit: 1 } as const;
    return (await this.#ports.store.forService(({ audit }) => audit.list(wanted)))[0];
  }

  /** One chain, by itself and by what the chain of the service repeats of it. */
  async verify(scope: string, anchor?: Anchor, onProgress: Progressed = () => {}): Promise<ChainReport> {
    const known = anchor === undefined ? [] : [anchor];
    if (scope === SERVICE_SCOPE) return this.#walk(scope, START, known, onProgress);
    const anchors = [...known, ...(await this.#repeated(scope))];
    for (let start = await prunedUntil(this.#ports.store, scope); ; ) {
      const report = await this.#walk(scope, start, anchors, onProgress);
      if (report.fault === undefined) return withoutPruned(report, start, anchor);
      // Entries may have gone while they were read.
      const now = await prunedUntil(this.#ports.store, scope);
      if (now.sequence === start.sequence) return report;
      start = now;
    }
  }

  /** Entries of a tenant that the chain of the service repeats: its creation, and the last change of the tenant. */
  async #repeated(tenantId: string): Promise<Anchor[]> {
    const [creation, latest] = [
      await this.#entryOf(tenantId, { action: 'created' }),
      await this.#entryOf(tenantId, {}),
    ];
    if (latest?.action === 'removed') return [];
    return [creation, latest].flatMap((entry) => (entry && detailOf(entry).of) ?? []);
  }

  /** @param start the last entry that is kept no longer. */
  async #walk(
    scope: string,
    start: Progress,
    anchors: readonly Anchor[],
    onProgress: Progressed,
  ): Promise<ChainReport> {
    const { macs } = this.#ports;
    // First of all, so that what is written meanwhile does not look like a head that was put back.
    const head = await this.#read(scope, (log) => log.head());
    const wanted = head?.sequence ?? Number.MAX_SAFE_INTEGER;
    let end = start;
    const other = lost(anchors, [start], start);
    if (other !== undefined) return { scope, end: START, fault: other };
    while (end.sequence < wanted) {
      const page = await this.#page(scope, end.sequence, wanted);
      if (page.length === 0) break;
      const { progress, fault } = checkEntries(macs, scope, end, page);
      const astray = lost(anchors, page, progress);
      if (astray !== undefined || fault !== undefined) {
        return { scope, end: progress, fault: (astray ?? fault) as ChainFault };
      }
      end = progress;
      onProgress(scope, end.sequence);
    }
    const fault =
      checkEnd(macs, scope, end, head) ?? short(anchors, end) ?? (await this.#faultAfter(scope, head));
    return { scope, end, ...defined({ fault }) };
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
    const { store } = this.#ports;
    return scope === SERVICE_SCOPE
      ? store.forService(({ audit }) => read(audit))
      : store.forTenant(scope as TenantId, ({ audit }) => read(audit));
  }
}
