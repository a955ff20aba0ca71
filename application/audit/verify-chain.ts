import { z } from 'zod';
import { SERVICE_SCOPE } from '../../domain/audit/audit-entry.ts';
import type { ChainFault, Progress } from '../../domain/audit/verify-entries.ts';
import { defined } from '../../domain/shared/defined.ts';
import { invalidInput } from '../../domain/shared/failure.ts';
import type { Caller } from '../caller.ts';
import { needs } from '../needs.ts';
import { AuditCodes } from '../ports/audit-codes.ts';
import { Store } from '../ports/store.ts';
import { warningOf } from './chain-reports.ts';
import { ChainWalk } from './chain-walk.ts';
import { readableLog } from './readable-log.ts';

/** Entries that one call verifies, so that none takes long. */
export const PIECE = 2_000;
/** How far the piece before was whole: number and hash of its last entry. */
const CURSOR = /^([1-9]\d{0,14})\.([A-Za-z0-9_.-]{1,200})$/;

export const VerificationQuery = z.object({
  tenant: z.string().max(63).optional().describe('Whose log; for `tenants:manage`, which otherwise verifies that of the service'),
  cursor: z
    .string()
    .max(220)
    .optional()
    .describe('`next` of the answer before; without it verification begins with the first entry that is kept'),
});
export type VerificationQuery = z.infer<typeof VerificationQuery>;

export type Verification = {
  /** `unfinished`: whole so far, and there is more. */
  readonly status: 'whole' | 'broken' | 'unfinished';
  /** The last entry up to which the chain is whole. */
  readonly verified: number;
  /** Of the newest entry, as the head of the chain says. */
  readonly length: number;
  readonly fault?: ChainFault;
  readonly warning?: string;
  readonly next?: string;
};

/**
 * Verifies one chain of the audit log piece by piece, as `npm run audit:verify` does with all of them at once. What the database
 * alone cannot show (docs/audit.md), and whether whole chains are gone, is found by the command only.
 */
export class VerifyChain extends needs({ store: Store, auditCodes: AuditCodes }) {
  /** @throws Failure `not_found`, `forbidden` as `readableLog` does; `invalid_input` for a cursor of no form; a made-up one finds the log `broken`. */
  async execute(caller: Caller, { tenant, cursor }: VerificationQuery): Promise<Verification> {
    const { store, auditCodes } = this.ports;
    const after = cursor === undefined ? undefined : parseCursor(cursor);
    const scope = await readableLog(store, caller, tenant);
    const chains = new ChainWalk({ store, macs: auditCodes.macs });
    const { end, fault, isOver, length, ...report } = await chains.piece(scope, after, PIECE);
    const common = { verified: end.sequence, length };
    if (fault !== undefined) return { ...common, status: 'broken', fault };
    if (!isOver) return { ...common, status: 'unfinished', next: `${end.sequence}.${end.hash}` };
    const warning = scope === SERVICE_SCOPE ? warningOf(await chains.beginning()) : report.warning;
    return { ...common, status: 'whole', ...defined({ warning }) };
  }
}

function parseCursor(cursor: string): Progress {
  const [, sequence, hash] = CURSOR.exec(cursor) ?? [];
  if (sequence === undefined || hash === undefined) throw invalidInput('cursor', 'take the cursor from the answer before');
  return { sequence: Number(sequence), hash };
}
