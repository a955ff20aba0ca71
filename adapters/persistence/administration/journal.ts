import {
  type Actor,
  type AuditChange,
  type AuditEntry,
  type EntryReference,
  SERVICE_SCOPE,
  SYSTEM,
} from '../../../domain/audit/audit-entry.ts';
import type { AttributedChange } from '../../../domain/audit/chain.ts';

/** Appends entries to one chain. @returns the entries of `additions`, in their order. */
export type Append = (scope: string, additions: readonly AttributedChange[]) => Promise<readonly AuditEntry[]>;

/** Audit entries of one transaction, written at its end. */
export class Journal {
  readonly #actor: Actor | undefined;
  readonly #notes = new Map<string, { change: AuditChange; of?: EntryReference }[]>();

  /** @param actor undefined if the transaction only reads. */
  constructor(actor: Actor | undefined) {
    this.#actor = actor;
  }

  /** @param scope the tenant, or `SERVICE_SCOPE`. @param reference the last entry of a chain that ends with this change. */
  note(scope: string, change: AuditChange, reference?: EntryReference): void {
    if (this.#actor === undefined) throw new Error('A transaction without an actor only reads.');
    const notes = this.#notes.get(scope) ?? [];
    notes.push({ change, ...(reference !== undefined && { of: reference }) });
    this.#notes.set(scope, notes);
  }

  get scopes(): readonly string[] {
    return [...this.#notes.keys()];
  }

  /**
   * Writes the chains of tenants in the order of their ids, and the chain of the service last. Because of the fixed order, transactions
   * that write to the same chains cannot deadlock.
   */
  async write(timestamp: Date, append: Append): Promise<void> {
    const actor = this.#actor;
    if (actor === undefined) return;
    const serviceAdditions: AttributedChange[] = [];
    for (const [scope, notes] of [...this.#notes].sort(([scopeA], [scopeB]) => (scopeA < scopeB ? -1 : 1))) {
      const additions = notes.map((note) => ({ ...note, by: actor, at: timestamp }));
      if (scope === SERVICE_SCOPE) {
        serviceAdditions.push(...additions);
        continue;
      }
      const entries = await append(scope, additions);
      const isOutside = actor !== SYSTEM && actor.tenantId === null;
      const copies = mirrored(scope, additions, entries);
      // The creation of a tenant is recorded in the chain of the service, too: without that, its removal from the database would go
      // unnoticed.
      serviceAdditions.push(...copies.filter(({ change }) => isOutside || isCreation(change)));
    }
    if (serviceAdditions.length > 0) await append(SERVICE_SCOPE, serviceAdditions);
  }
}

function isCreation({ action, kind }: AuditChange): boolean {
  return action === 'created' && kind === 'tenant';
}

function mirrored(tenantId: string, additions: readonly AttributedChange[], entries: readonly AuditEntry[]): readonly AttributedChange[] {
  return additions.map((addition, index) => {
    const { sequence = 0, hash = '' } = entries[index] ?? {};
    return { ...addition, of: { tenantId, sequence, hash } };
  });
}
