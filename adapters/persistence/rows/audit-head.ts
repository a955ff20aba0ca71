import type { AuditHead } from '../../../domain/audit/chain.ts';
import type { Row } from '../statement.ts';

/** A blank head counts as none. */
export function readHead({ sequence, hash, seal }: Row): AuditHead | undefined {
  if (typeof seal !== 'string' || seal === '') return undefined;
  return { sequence: Number(sequence), hash: String(hash), seal };
}
