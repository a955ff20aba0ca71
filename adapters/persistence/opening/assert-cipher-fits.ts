import type { Cipher } from '../../../application/ports/cipher.ts';
import type { JobSql } from '../job-sql.ts';
import { documentContext } from '../rows/document-tables.ts';
import { namedStatement } from '../statement.ts';
import { FOREIGN_SECRET } from './foreign-secret.ts';

const SELECT_KEYS = namedStatement('known_sealing_keys', 'select id, resealed_at from sealing_keys');
const OLDEST = namedStatement('oldest_key_chain', 'select tenant_id, id, body from key_chains order by created_at limit 1');
const NOTE = namedStatement(
  'note_sealing_key',
  `insert into sealing_keys (id, first_used_at, resealed_at, audit_key) values ($1, $2, null, null)
   on conflict (id) do update set first_used_at = excluded.first_used_at, resealed_at = null, audit_key = null`,
);

/**
 * Rejects a cipher that cannot open the whole database, and records the key with which it seals. The record is written first: a later start
 * without that key is rejected, also after a crash.
 * @param seals false for read-only access, which leaves no record.
 */
export async function assertCipherFits(sql: JobSql, cipher: Cipher, seals: boolean): Promise<void> {
  const rows = await sql.all(SELECT_KEYS);
  const activeKeys = rows.filter((row) => row['resealed_at'] === null);
  if (activeKeys.some((row) => !cipher.keyIds.includes(String(row['id'])))) throw foreignSecret();
  await assertOpensOldest(sql, cipher);
  const [id] = cipher.keyIds;
  if (!seals || activeKeys.some((key) => key['id'] === id)) return;
  await sql.change(NOTE, id, Date.now());
}

/** Opens one sealed document, for databases from before keys were recorded; a key chain, because every tenant has one. */
async function assertOpensOldest(sql: JobSql, cipher: Cipher): Promise<void> {
  const [oldest] = await sql.all(OLDEST);
  if (oldest === undefined) return;
  try {
    cipher.open(String(oldest['body']), documentContext('key_chains', String(oldest['tenant_id']), String(oldest['id'])));
  } catch (cause) {
    throw foreignSecret(cause);
  }
}

function foreignSecret(cause?: unknown): Error {
  return new Error(
    `${FOREIGN_SECRET}, or not all of them are set. Start with that secret; after a change of the secret, list every ` +
      'former secret after it, separated by commas',
    { cause },
  );
}
