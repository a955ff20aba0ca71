import { object, z } from 'zod';
import { chainsOfKey, keyIdOf } from '../../../application/keys/shared-key.ts';
import type { KeyChain } from '../../../domain/keys/key-chain.ts';
import { viewOf } from '../output/view-of.ts';
import { PublicKeyView, toPublicKeyView } from './key-chain.view.ts';

export const KeyView = object({
  id: z.string().describe('The id of its first key chain'),
  description: z.string().nullable(),
  tenantId: z.string(),
  key: PublicKeyView,
  usage: z.literal('sign'),
  kmsProvider: z.string(),
  certificates: z.array(object({ id: z.string() })).describe('All certificates of this key'),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
}).meta({ id: 'Key', description: 'A key; its private part is never shown' });

/**
 * Converts the key of a key chain.
 * @param chains all key chains of the tenant, since several can share one key.
 */
export function toKeyView(chain: KeyChain, chains: readonly KeyChain[]) {
  const id = keyIdOf(chain, chains);
  const { key } = chain.active;
  return viewOf(KeyView, {
    ...(chains.find((candidate) => candidate.id === id) ?? chain),
    id,
    key: toPublicKeyView(key),
    usage: 'sign',
    kmsProvider: key.handle.kms,
    certificates: chainsOfKey(id, chains).map((candidate) => ({ id: candidate.id })),
  });
}
