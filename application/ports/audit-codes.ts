import type { Macs } from '../../domain/audit/macs.ts';

/** What the chains of the audit log are verified with. */
export abstract class AuditCodes {
  abstract readonly macs: Macs;
}
