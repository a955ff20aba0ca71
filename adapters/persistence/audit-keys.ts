import { createSecretKey } from 'node:crypto';
import type { Cipher } from '../../application/ports/cipher.ts';
import type { MacKey, Macs } from '../../domain/audit/macs.ts';
import type { JobSql } from './job-sql.ts';
import { namedStatement } from './statement.ts';

/** Purpose of the key that chains the audit log. */
export const AUDIT_LOG = 'vidimus/audit-log';

const SELECT_FORMER_KEYS = namedStatement('former_audit_keys', 'select id, audit_key from sealing_keys where audit_key is not null');

/** Sealing context of the audit key of a former master secret. */
export function auditKeyContext(id: string): string {
  return `sealing_keys/audit_key/${id}`;
}

/** MACs of the audit log, with the keys of removed secrets, which still verify the entries that they protect. */
export async function auditMacs(sql: JobSql, cipher: Cipher): Promise<Macs> {
  const formerKeys = (await sql.all(SELECT_FORMER_KEYS)).map((row): MacKey => {
    const id = String(row['id']);
    const bytes = cipher.open(String(row['audit_key']), auditKeyContext(id));
    return { id, key: createSecretKey(bytes) };
  });
  return cipher.macs(AUDIT_LOG, formerKeys);
}
