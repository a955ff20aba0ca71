import type { Macs } from '../../domain/audit/macs.ts';

/** Message authentication codes that protect the chains of the audit log. */
export abstract class AuditMacs {
  abstract readonly macs: Macs;
}
