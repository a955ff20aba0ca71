import {
  type Actor,
  type AuditChange,
  type AuditEntry,
  type EntryReference,
  SERVICE_SCOPE,
  SYSTEM,
} from '../../../domain/audit/audit-entry.ts';
import type { Attributed } from '../../../domain/audit/chain.ts';

/** Adds entries to one chain. @returns those that belong to `additions`, in their order. */
export type Append = (scope: string, additions: readonly Attributed[]) => Promise<readonly AuditEntry[]>;

/** What one transaction has to tell the audit log at its end. */
export class Journal {
  readonly #by: Actor | undefined;
  readonly #notes = new Map<string, { change: AuditChange; of?: EntryReference }[]>();

  /** @param by absent when the transaction only reads. */
  constructor(by: Actor | undefined) {
    this.#by = by;
  }

  /** @param scope the tenant, or `SERVICE_SCOPE`. @param of what the entry is about in a chain that ends with it. */
  note(scope: string, change: AuditChange, of?: EntryReference): void {
    if (this.#by === undefined) throw new Error('A transaction without an actor only reads.');
    const notes = this.#notes.get(scope) ?? [];
    notes.push({ change, ...(of !== undefined && { of }) });
    this.#notes.set(scope, notes);
  }

  /** Tenants that it has something to tell of. */
  get scopes(): readonly string[] {
    return [...this.#notes.keys()];
  }

  /**
   * Chains of tenants first, in the order of their ids, the service's last: so two transactions that write to the same
   * chains wait for each other in turn.
   */
  async write(at: Date, append: Append): Promise<void> {
    const by = this.#by;
    if (by === undefined) return;
    const ofService: Attributed[] = [];
    for (const [scope, notes] of [...this.#notes].sort(([one], [other]) => (one < other ? -1 : 1))) {
      const additions = notes.map((note) => ({ ...note, by, at }));
      if (scope === SERVICE_SCOPE) {
        ofService.push(...additions);
        continue;
      }
      const entries = await append(scope, additions);
      const isOutside = by !== SYSTEM && by.tenantId === null;
      const copies = mirrored(scope, additions, entries);
      // The one who makes a tenant: without that nobody would miss one that somebody takes away.
      ofService.push(...copies.filter(({ change }) => isOutside || isCreation(change)));
    }
    if (ofService.length > 0) await append(SERVICE_SCOPE, ofService);
  }
}

function isCreation({ action, kind }: AuditChange): boolean {
  return action === 'created' && kind === 'tenant';
}

function mirrored(tenantId: string, additions: readonly Attributed[], entries: readonly AuditEntry[]): readonly Attributed[] {
  return additions.map((addition, index) => {
    const { sequence = 0, hash = '' } = entries[index] ?? {};
    return { ...addition, of: { tenantId, sequence, hash } };
  });
}
