import { SERVICE_SCOPE } from '../../domain/audit/audit-entry.ts';
import type { Macs } from '../../domain/audit/macs.ts';
import { type ChainFault, START } from '../../domain/audit/verify-entries.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { Store } from '../ports/store.ts';
import { type Anchor, type ChainReport, madeTwice, missing, tenantGone, unknownOrigin, warningOf } from './chain-reports.ts';
import { BATCH, ChainWalk, type Progressed } from './chain-walk.ts';

type Ports = { readonly store: Store; readonly macs: Macs };

/** Walks the chains of the audit log and finds what was removed or altered. It may run beside the service. */
export class VerifyAuditLog {
  readonly #ports: Ports;
  readonly #chains: ChainWalk;

  constructor(ports: Ports) {
    this.#ports = ports;
    this.#chains = new ChainWalk(ports);
  }

  /**
   * @param anchors entries that somebody kept elsewhere, by their chain.
   * @returns a report per chain, that of the service first.
   */
  async *execute(anchors: ReadonlyMap<string, Anchor> = new Map(), onProgress: Progressed = () => {}): AsyncGenerator<ChainReport> {
    const beginning = await this.#chains.beginning();
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
    const latest = await this.#chains.entryOf(id, {});
    const isRemoved = latest?.action === 'removed';
    if (tenant === undefined) return isRemoved ? 'known' : tenantGone(latest);
    const creation = await this.#chains.entryOf(id, { action: 'created' });
    if (creation === undefined || isRemoved) {
      const [own] = await store.forTenant(id, ({ audit }) => audit.list({ ascending: true, limit: 1 }));
      const isOlder = !isRemoved && !(own?.action === 'created' && own.kind === 'tenant');
      return isOlder ? 'older' : unknownOrigin();
    }
    const former = await this.#chains.entryOf(id, { after: creation.sequence });
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

  /** One chain, by itself and by what the chain of the service repeats of it. */
  verify(scope: string, anchor?: Anchor, onProgress?: Progressed): Promise<ChainReport> {
    return this.#chains.whole(scope, anchor, onProgress);
  }
}
