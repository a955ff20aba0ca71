import type { EntityManager } from '@mikro-orm/core';
import type { Cipher } from '../../../application/ports/cipher.ts';
import type { Documents } from '../../../application/ports/repositories.ts';
import type { KeyChain } from '../../../domain/keys/key-chain.ts';
import { keysOutside, type RetiredKey, removedKeys } from '../../../domain/keys/retired-keys.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { RetiredKeyRow } from '../rows/administration.row.ts';
import { decodeDocument } from '../rows/document-codec.ts';
import { documentContext } from '../rows/document-tables.ts';

/** Schedules keys for destruction at their provider, in the transaction that removes them from the last key chain. */
export async function retireKeys(em: EntityManager, keys: readonly RetiredKey[]): Promise<void> {
  for (const { tenantId, handle } of keys) {
    const { kms, keyId, algorithm } = handle;
    const row = { owner: tenantId, kms, keyId, algorithm, retiredAt: Date.now() };
    await em.upsert(RetiredKeyRow, row, { onConflictAction: 'ignore' });
  }
}

export async function keyChainsOf(em: EntityManager, cipher: Cipher, tenantId: TenantId): Promise<KeyChain[]> {
  const rows = (await em
    .getConnection()
    .execute('select id, body from key_chains where tenant_id = ?', [tenantId], 'all', em.getTransactionContext())) as {
    readonly id: string;
    readonly body: string;
  }[];
  return rows.flatMap(({ id, body }) => {
    try {
      const plaintext = cipher.open(body, documentContext('key_chains', tenantId, id));
      return [decodeDocument<KeyChain>(plaintext.toString('utf8'))];
    } catch {
      // A key chain that was tampered with must not prevent the removal of its tenant.
      return [];
    }
  });
}

/** Wraps the key chains of a tenant: `put` and `remove` also retire the keys that no key chain of the tenant contains any more. */
export function withRetiredKeys(em: EntityManager, chains: Documents<KeyChain>): Documents<KeyChain> {
  const retireRemovedKeys = async (previousChain: KeyChain | undefined, newChain: KeyChain | undefined) => {
    const keys = removedKeys(previousChain, newChain);
    if (keys.length > 0) await retireKeys(em, keysOutside(keys, await chains.list()));
  };
  return {
    ...chains,
    async put(chain) {
      const previousChain = await chains.find(chain.id);
      await chains.put(chain);
      await retireRemovedKeys(previousChain, chain);
    },
    async remove(id) {
      const removedChain = await chains.find(id);
      await chains.remove(id);
      await retireRemovedKeys(removedChain, undefined);
    },
  };
}
