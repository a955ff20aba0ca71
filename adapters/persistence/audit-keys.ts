import { createSecretKey } from 'node:crypto';
import type { Cipher } from '../../application/ports/cipher.ts';
import type { MacKey, Macs } from '../../domain/audit/macs.ts';
import type { JobSql } from './job-sql.ts';
import { named } from './statement.ts';

/** Purpose of the key under which the audit log is chained. */
export const AUDIT_LOG = 'vidimus/audit-log';

const FORMER = named('former_audit_keys', 'select id, audit_key from sealing_keys where audit_key is not null');

/** Where the audit key of a former master secret is sealed. */
export function auditKeyPlace(id: string): string {
  return `sealing_keys/audit_key/${id}`;
}

/** The codes of the audit log, with the keys of secrets that are not listed any more: they verify what they wrote. */
export async function auditMacs(sql: JobSql, cipher: Cipher): Promise<Macs> {
  const former = (await sql.all(FORMER)).map((row): MacKey => {
    const id = String(row['id']);
    const bytes = cipher.open(String(row['audit_key']), auditKeyPlace(id));
    return { id, key: createSecretKey(bytes) };
  });
  return cipher.macs(AUDIT_LOG, former);
}
