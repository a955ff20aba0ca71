import { z } from 'zod';
import { SERVICE_SCOPE } from '../../domain/audit/audit-entry.ts';
import type { ChainFault, Progress } from '../../domain/audit/verify-entries.ts';
import { defined } from '../../domain/shared/defined.ts';
import { invalidInput } from '../../domain/shared/failure.ts';
import type { Caller } from '../caller.ts';
import { needs } from '../needs.ts';
import { AuditMacs } from '../ports/audit-macs.ts';
import { Store } from '../ports/store.ts';
import { warningOf } from './chain-reports.ts';
import { ChainVerifier } from './chain-verifier.ts';
import { readableLog } from './readable-log.ts';

/** Limit of entries per call, so that none takes long. */
export const PIECE_ENTRIES = 2_000;
/** Progress of earlier pieces: number and hash of the last verified entry. */
const CURSOR = /^([1-9]\d{0,14})\.([A-Za-z0-9_.-]{1,200})$/;

export const VerificationQuery = z.object({
  tenant: z.string().max(63).optional().describe('Tenant of the log, for `tenants:manage`. Default: the log of the service'),
  cursor: z
    .string()
    .max(220)
    .optional()
    .describe('`next` of the previous response; without it verification begins with the first stored entry'),
});
export type VerificationQuery = z.infer<typeof VerificationQuery>;

export type Verification = {
  /** `unfinished`: intact so far, and there is more. */
  readonly status: 'whole' | 'broken' | 'unfinished';
  readonly verified: number;
  /** Sequence of the newest entry according to the head of the chain. */
  readonly length: number;
  readonly fault?: ChainFault;
  readonly warning?: string;
  readonly next?: string;
};

/**
 * Verifies one chain of the audit log piece by piece, as `npm run audit:verify` does with all of them at once. Only the command finds
 * missing chains, and what the database alone cannot show (docs/reference/audit.md).
 */
export class VerifyChain extends needs({ store: Store, auditMacs: AuditMacs }) {
  /** @throws Failure `not_found`, `forbidden` as `readableLog`; `invalid_input` for a malformed cursor. A forged one gives `broken`. */
  async execute(caller: Caller, { tenant, cursor }: VerificationQuery): Promise<Verification> {
    const { store, auditMacs } = this.ports;
    const progress = cursor === undefined ? undefined : parseCursor(cursor);
    const scope = await readableLog(store, caller, tenant);
    const chains = new ChainVerifier({ store, macs: auditMacs.macs });
    const { end, fault, isOver, length, ...report } = await chains.verifyPiece(scope, progress, PIECE_ENTRIES);
    const common = { verified: end.sequence, length };
    if (fault !== undefined) return { ...common, status: 'broken', fault };
    if (!isOver) return { ...common, status: 'unfinished', next: `${end.sequence}.${end.hash}` };
    const warning = scope === SERVICE_SCOPE ? warningOf(await chains.readBeginning()) : report.warning;
    return { ...common, status: 'whole', ...defined({ warning }) };
  }
}

function parseCursor(cursor: string): Progress {
  const [, sequence, hash] = CURSOR.exec(cursor) ?? [];
  if (sequence === undefined || hash === undefined) throw invalidInput('cursor', 'use the cursor of the previous response');
  return { sequence: Number(sequence), hash };
}
