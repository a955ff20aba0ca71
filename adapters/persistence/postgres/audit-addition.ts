import type { AuditEntry } from '../../../domain/audit/audit-entry.ts';
import type { AuditHead } from '../../../domain/audit/chain.ts';
import type { Fields } from '../rows/columns.ts';

/** `audit_addition`: the expected end of the chain, the entry, and the end of the chain with it. */
export type AuditAddition = Fields;

export function additionOf(previousHead: AuditHead, newHead: AuditHead, entry: AuditEntry): AuditAddition {
  const { at: recordedAt, actor, action, kind, target, detail } = entry;
  const { sequence, hash, seal } = newHead;
  return [previousHead.sequence, previousHead.hash, sequence, hash, seal, recordedAt.getTime(), actor, action, kind, target, detail];
}
