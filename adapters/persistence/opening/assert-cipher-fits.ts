import type { Cipher } from '../../../application/ports/cipher.ts';
import type { JobSql } from '../job-sql.ts';
import { placeOf } from '../rows/document-tables.ts';
import { named } from '../statement.ts';
import { FOREIGN_SECRET } from './foreign-secret.ts';

const KNOWN = named('known_sealing_keys', 'select id, resealed_at from sealing_keys');
const OLDEST = named('oldest_key_chain', 'select tenant_id, id, body from key_chains order by created_at limit 1');
const NOTE = named(
  'note_sealing_key',
  `insert into sealing_keys (id, first_used_at, resealed_at, audit_key) values ($1, $2, null, null)
   on conflict (id) do update set first_used_at = excluded.first_used_at, resealed_at = null, audit_key = null`,
);

/**
 * Refuses a cipher that would not open all of the database, and notes the key with which it is going to seal.
 * The note comes first: the one who starts without that key later is refused, also after a crash.
 * @param seals false for who only reads, and leaves no note.
 */
export async function assertCipherFits(sql: JobSql, cipher: Cipher, seals: boolean): Promise<void> {
  const rows = await sql.all(KNOWN);
  const known = rows.filter((row) => row['resealed_at'] === null);
  if (known.some((row) => !cipher.keyIds.includes(String(row['id'])))) throw foreignSecret();
  await assertOpensOldest(sql, cipher);
  const [id] = cipher.keyIds;
  if (!seals || known.some((key) => key['id'] === id)) return;
  await sql.change(NOTE, id, Date.now());
}

/** Opens one sealed document, for databases from before keys were noted; a key chain, since every tenant has one. */
async function assertOpensOldest(sql: JobSql, cipher: Cipher): Promise<void> {
  const [oldest] = await sql.all(OLDEST);
  if (oldest === undefined) return;
  try {
    cipher.open(String(oldest['body']), placeOf('key_chains', String(oldest['tenant_id']), String(oldest['id'])));
  } catch (cause) {
    throw foreignSecret(cause);
  }
}

function foreignSecret(cause?: unknown): Error {
  return new Error(
    `${FOREIGN_SECRET}, or not all of those that did. Start with that one; after a change of the secret, list every ` +
      'former one behind it, separated by commas',
    { cause },
  );
}
