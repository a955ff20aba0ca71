import type { EntityManager } from '@mikro-orm/core';
import type { Cipher } from '../../../application/ports/cipher.ts';
import { SealingKeyRow } from '../rows/status.row.ts';
import { placeOf } from './documents.ts';

/**
 * Refuses a cipher that would not open all of the database, and notes the key with which it is going to seal.
 * The note comes first: the one who starts without that key later is refused, also after a crash.
 * @param seals false for who only reads, and leaves no note.
 */
export async function checkCipher(em: EntityManager, cipher: Cipher, seals: boolean): Promise<void> {
  const connection = em.getConnection();
  const rows = (await connection.execute('select id, resealed_at from sealing_keys')) as {
    readonly id: string;
    readonly resealed_at: unknown;
  }[];
  const known = rows.filter(({ resealed_at }) => resealed_at === null);
  if (known.some(({ id }) => !cipher.keyIds.includes(id))) throw foreignSecret();
  await checkOldest(em, cipher);
  const [id] = cipher.keyIds;
  if (!seals || known.some((key) => key.id === id)) return;
  await em.upsert(SealingKeyRow, { id, firstUsedAt: Date.now(), resealedAt: null, auditKey: null });
}

/** Opens one sealed document, for databases from before keys were noted; a key chain, since every tenant has one. */
async function checkOldest(em: EntityManager, cipher: Cipher): Promise<void> {
  const rows = await em
    .getConnection()
    .execute('select tenant_id, id, body from key_chains order by created_at limit 1');
  const [oldest] = rows as Record<string, unknown>[];
  if (oldest === undefined) return;
  try {
    cipher.open(
      String(oldest['body']),
      placeOf('key_chains', String(oldest['tenant_id']), String(oldest['id'])),
    );
  } catch (cause) {
    throw foreignSecret(cause);
  }
}

function foreignSecret(cause?: unknown): Error {
  return new Error(
    'MASTER_SECRET is not the one that sealed this database, or not all of those that did. Start with that one; after ' +
      'a change of the secret, list every former one behind it, separated by commas',
    { cause },
  );
}
