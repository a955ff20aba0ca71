import { SERVICE_SCOPE } from '../../domain/audit/audit-entry.ts';
import type { Macs } from '../../domain/audit/macs.ts';
import { CHAIN_START, type ChainFault } from '../../domain/audit/verify-entries.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { Store } from '../ports/store.ts';
import {
  type Anchor,
  type ChainReport,
  createdTwiceFault,
  missingChainReport,
  tenantMissingFault,
  unknownOriginFault,
  warningOf,
} from './chain-reports.ts';
import { BATCH, ChainVerifier, type ReportProgress } from './chain-verifier.ts';

type Ports = { readonly store: Store; readonly macs: Macs };

/** Verifies the chains of the audit log. It may run while the service runs. */
export class VerifyAuditLog {
  readonly #ports: Ports;
  readonly #chains: ChainVerifier;

  constructor(ports: Ports) {
    this.#ports = ports;
    this.#chains = new ChainVerifier(ports);
  }

  /**
   * @param anchors entries that an operator recorded elsewhere, by their chain.
   * @returns a report per chain, that of the service first.
   */
  async *execute(anchors: ReadonlyMap<string, Anchor> = new Map(), onProgress: ReportProgress = () => {}): AsyncGenerator<ChainReport> {
    const beginning = await this.#chains.readBeginning();
    const anchor = anchors.get(SERVICE_SCOPE);
    const report = await this.verify(SERVICE_SCOPE, anchor, onProgress);
    const warning = anchor === undefined ? warningOf(beginning) : undefined;
    yield report.fault === undefined && warning !== undefined ? { ...report, warning } : report;
    const verifiedScopes = new Set<string>([SERVICE_SCOPE]);
    const nextScope = (previousScope: string) => this.#ports.store.forService(({ audit }) => audit.nextScope(previousScope));
    let older = 0;
    for (let scope = await nextScope(SERVICE_SCOPE); scope !== undefined; scope = await nextScope(scope)) {
      verifiedScopes.add(scope);
      const tenantReport = await this.verify(scope, anchors.get(scope), onProgress);
      const origin = beginning.isEmpty || tenantReport.fault !== undefined ? 'known' : await this.#origin(scope);
      if (origin === 'older') older++;
      const fault = origin === 'older' && older > beginning.olderTenants ? unknownOriginFault() : origin;
      yield typeof fault === 'string' ? tenantReport : { ...tenantReport, fault };
    }
    for await (const missingReport of this.#findMissing(verifiedScopes)) {
      verifiedScopes.add(missingReport.scope);
      yield missingReport;
    }
    for (const [missingScope, expectedAnchor] of anchors)
      if (!verifiedScopes.has(missingScope)) yield missingChainReport(missingScope, expectedAnchor);
  }

  /**
   * Checks the creation of a tenant against the chain of the service. Repeated before a fault is reported, since the tenant may be
   * created or removed concurrently.
   * @returns `older` if no entry records its creation, as for tenants that are older than the log.
   */
  async #origin(tenantId: TenantId): Promise<ChainFault | 'known' | 'older'> {
    const firstResult = await this.#originNow(tenantId);
    return firstResult === 'known' ? firstResult : this.#originNow(tenantId);
  }

  async #originNow(id: TenantId): Promise<ChainFault | 'known' | 'older'> {
    const { store } = this.#ports;
    const tenant = await store.forService(({ tenants }) => tenants.find(id));
    const latest = await this.#chains.entryOf(id, {});
    const isRemoved = latest?.action === 'removed';
    if (tenant === undefined) return isRemoved ? 'known' : tenantMissingFault(latest);
    const creation = await this.#chains.entryOf(id, { action: 'created' });
    if (creation === undefined || isRemoved) {
      const [firstEntry] = await store.forTenant(id, ({ audit }) => audit.list({ ascending: true, limit: 1 }));
      const isOlder = !isRemoved && !(firstEntry?.action === 'created' && firstEntry.kind === 'tenant');
      return isOlder ? 'older' : unknownOriginFault();
    }
    const previousEntry = await this.#chains.entryOf(id, { after: creation.sequence });
    return previousEntry === undefined || previousEntry.action === 'removed' ? 'known' : createdTwiceFault(creation);
  }

  /** Reports tenants that were created and not removed, and whose data are missing. */
  async *#findMissing(verifiedScopes: ReadonlySet<string>): AsyncGenerator<ChainReport> {
    const { store } = this.#ports;
    const query = { kind: 'tenant', action: 'created', ascending: true, limit: BATCH } as const;
    let cursor = 0;
    for (;;) {
      const page = await store.forService(({ audit }) => audit.list({ ...query, after: cursor }));
      for (const { target } of page) {
        if (verifiedScopes.has(target)) continue;
        const origin = await this.#origin(target as TenantId);
        if (typeof origin !== 'string') yield { scope: target, end: CHAIN_START, fault: origin };
      }
      const lastEntry = page.at(-1);
      if (lastEntry === undefined) return;
      cursor = lastEntry.sequence;
    }
  }

  /** Verifies one chain, by itself and against the entries that the service's chain repeats. */
  verify(scope: string, anchor?: Anchor, onProgress?: ReportProgress): Promise<ChainReport> {
    return this.#chains.verifyWhole(scope, anchor, onProgress);
  }
}
