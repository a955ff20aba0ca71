import { createSecretKey } from 'node:crypto';
import type { EntityManager } from '@mikro-orm/core';
import type { Cipher } from '../../../application/ports/cipher.ts';
import type { MacKey, Macs } from '../../../domain/audit/macs.ts';
import { SealingKeyRow } from '../rows/status.row.ts';

/** Purpose of the key under which the audit log is chained. */
export const AUDIT_LOG = 'vidimus/audit-log';

/** Where the audit key of a former master secret is sealed. */
export function auditKeyPlace(id: string): string {
  return `sealing_keys/audit_key/${id}`;
}

/** The codes of the audit log, with the keys of secrets that are not listed any more: they verify what they wrote. */
export async function auditMacs(em: EntityManager, cipher: Cipher): Promise<Macs> {
  const rows = await em.find(SealingKeyRow, { auditKey: { $ne: null } });
  const former = rows.map(({ id, auditKey }): MacKey => {
    const bytes = cipher.open(auditKey ?? '', auditKeyPlace(id));
    return { id, key: createSecretKey(bytes) };
  });
  return cipher.macs(AUDIT_LOG, former);
}
