import type { AuditEntry } from '../../../domain/audit/audit-entry.ts';
import type { AuditHead } from '../../../domain/audit/chain.ts';
import type { Fields } from '../rows/columns.ts';

/** `audit_addition`: where its writer takes the chain to end, the entry, and where the chain ends with it. */
export type AuditAddition = Fields;

export function additionOf(before: AuditHead, after: AuditHead, entry: AuditEntry): AuditAddition {
  const { at, actor, action, kind, target, detail } = entry;
  const { sequence, hash, seal } = after;
  return [before.sequence, before.hash, sequence, hash, seal, at.getTime(), actor, action, kind, target, detail];
}
