import type { AuditLog, AuditQuery, ServiceRepositories } from '../../../application/ports/store.ts';
import {
  type AuditChange,
  type AuditEntry,
  SERVICE_SCOPE,
  type TenantActor,
} from '../../../domain/audit/audit-entry.ts';
import { type Attributed, type AuditHead, begin, extend } from '../../../domain/audit/chain.ts';
import type { Macs } from '../../../domain/audit/macs.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { State } from './state.ts';
import { EVERYWHERE } from './table.ts';

const HEAD = 'head';

/** The chains of the audit log. */
export class AuditChains {
  readonly #state: State;
  readonly #macs: Macs;

  constructor(state: State, macs: Macs) {
    this.#state = state;
    this.#macs = macs;
    const { entries, head } = begin(macs, 0, new Date());
    this.#put(SERVICE_SCOPE, entries, head);
  }

  /** @returns the entries of `additions`, without one that the chain itself gave rise to. */
  append(scope: string, additions: readonly Attributed[]): readonly AuditEntry[] {
    const { auditHeads, auditEntries } = this.#state;
    const lastSequence = Math.max(0, ...auditEntries.list(scope).map(({ sequence }) => sequence));
    const found = { head: auditHeads.find(scope, HEAD), lastSequence };
    const { entries, head } = extend(this.#macs, scope, found, additions);
    this.#put(scope, entries, head);
    return entries.slice(-additions.length);
  }

  #put(scope: string, entries: readonly AuditEntry[], head: AuditHead): void {
    const { auditHeads, auditEntries } = this.#state;
    for (const entry of entries) auditEntries.put(scope, String(entry.sequence), entry);
    auditHeads.put(scope, HEAD, head);
  }

  /** Adds one entry to a tenant's chain. */
  note(tenantId: TenantId, by: TenantActor, change: AuditChange): void {
    this.append(tenantId, [{ by, at: new Date(), change }]);
  }

  log(scope: string): AuditLog {
    const { auditHeads, auditEntries } = this.#state;
    return {
      head: async () => auditHeads.find(scope, HEAD),
      async list(query) {
        return auditEntries
          .list(scope, (entry) => isWanted(entry, query))
          .sort((one, other) => (one.sequence - other.sequence) * (query.ascending ? 1 : -1))
          .slice(0, query.limit);
      },
    };
  }

  serviceLog(): ServiceRepositories['audit'] {
    const { tenants, auditEntries, auditHeads } = this.#state;
    return {
      ...this.log(SERVICE_SCOPE),
      async nextScope(after) {
        const chains = [auditEntries, auditHeads].flatMap((table) =>
          table.everywhere(() => true).map(({ scope }) => scope),
        );
        const ids = [...chains, ...tenants.list(EVERYWHERE).map(({ id }) => id)];
        return ids.filter((id) => id > after).sort()[0] as TenantId | undefined;
      },
    };
  }
}

function isWanted(entry: AuditEntry, query: AuditQuery): boolean {
  const { actor, kind, target, action, since, until, after, ascending = false } = query;
  const is = <T>(wanted: T | undefined, value: T) => wanted === undefined || wanted === value;
  return (
    is(actor, entry.actor) &&
    is(kind, entry.kind) &&
    is(target, entry.target) &&
    is(action, entry.action) &&
    (since === undefined || entry.at >= since) &&
    (until === undefined || entry.at < until) &&
    (after === undefined || (ascending ? entry.sequence > after : entry.sequence < after))
  );
}
