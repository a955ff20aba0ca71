import { type KeyChain, trustedLeaves } from '../../domain/keys/key-chain.ts';
import type { OwnTrustList } from '../../domain/trust-lists/own-address.ts';
import { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';
import type { TrustAnchor } from '../ports/certificates.ts';
import type { Store } from '../ports/store.ts';
import type { TenantConfigurations } from '../tenant-configurations.ts';
import type { PinnedSigners } from './verify-trust-list.ts';

type Ports = { readonly store: Store; readonly tenantConfigurations: TenantConfigurations };

/**
 * A list of this service, from its own database; unless told otherwise its tenant's keys sign it.
 * @throws TrustListRefusal `unavailable`.
 */
export async function readOwnList(
  { store, tenantConfigurations }: Ports,
  { tenantId, listId }: OwnTrustList,
  signers: PinnedSigners,
): Promise<{ readonly bytes: Buffer; readonly signers: PinnedSigners }> {
  const published = await store.read(tenantId).trustList(listId);
  const configured = published && (await tenantConfigurations.stored(tenantId));
  if (published === undefined || configured === undefined) {
    throw new TrustListRefusal('unavailable', 'this service publishes no such list');
  }
  const isPinned = signers.anchors.length > 0;
  const anchors = isPinned ? signers.anchors : signersOf(await configured.keyChains());
  return { bytes: Buffer.from(published.jwt, 'latin1'), signers: { ...signers, anchors } };
}

function signersOf(chains: readonly KeyChain[]): readonly TrustAnchor[] {
  return chains
    .filter(({ usages }) => usages.includes('trustList'))
    .flatMap(trustedLeaves)
    .flatMap(({ certificates }) => certificates.slice(0, 1))
    .map((certificate) => ({ certificate }));
}
