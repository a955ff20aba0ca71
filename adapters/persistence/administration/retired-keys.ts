import type { EntityManager } from '@mikro-orm/core';
import type { Cipher } from '../../../application/ports/cipher.ts';
import type { Documents } from '../../../application/ports/repositories.ts';
import { droppedKeys, keysOutside, type RetiredKey } from '../../../domain/keys/kept-keys.ts';
import type { KeyChain } from '../../../domain/keys/key-chain.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { RetiredKeyRow } from '../rows/administration.row.ts';
import { decodeDocument } from '../rows/document-codec.ts';
import { placeOf } from '../rows/document-tables.ts';

/** Notes keys that are to be destroyed at their provider, in the transaction in which the last key chain loses them. */
export async function retire(em: EntityManager, keys: readonly RetiredKey[]): Promise<void> {
  for (const { tenantId, handle } of keys) {
    const { kms, keyId, algorithm } = handle;
    const row = { owner: tenantId, kms, keyId, algorithm, retiredAt: Date.now() };
    await em.upsert(RetiredKeyRow, row, { onConflictAction: 'ignore' });
  }
}

/** For an account that manages tenants: the key chains of one of them. */
export async function keyChainsOf(em: EntityManager, cipher: Cipher, tenantId: TenantId): Promise<KeyChain[]> {
  const rows = (await em
    .getConnection()
    .execute('select id, body from key_chains where tenant_id = ?', [tenantId], 'all', em.getTransactionContext())) as {
    readonly id: string;
    readonly body: string;
  }[];
  return rows.flatMap(({ id, body }) => {
    try {
      const opened = cipher.open(body, placeOf('key_chains', tenantId, id));
      return [decodeDocument<KeyChain>(opened.toString('utf8'))];
    } catch {
      // A key chain that was tampered with does not keep its tenant from being removed.
      return [];
    }
  });
}

/** Key chains of a tenant: who writes one need not think of the keys that it loses. */
export function retiringKeys(em: EntityManager, chains: Documents<KeyChain>): Documents<KeyChain> {
  const retireDropped = async (before: KeyChain | undefined, after: KeyChain | undefined) => {
    const dropped = droppedKeys(before, after);
    if (dropped.length > 0) await retire(em, keysOutside(dropped, await chains.list()));
  };
  return {
    ...chains,
    async put(chain) {
      const before = await chains.find(chain.id);
      await chains.put(chain);
      await retireDropped(before, chain);
    },
    async remove(id) {
      const before = await chains.find(id);
      await chains.remove(id);
      await retireDropped(before, undefined);
    },
  };
}
