import { isCompromised, type KeyChain, selectKeyChain } from '../keys/key-chain.ts';
import { Failure } from '../shared/failure.ts';
import type { StatusList } from './status-list.ts';

/** Permitted signers of the lists of one credential: ids of key chains, null for the tenant's default. */
export type ListSigners = { readonly preferred: string | null; readonly accepted: ReadonlySet<string | null> };

/**
 * The signer of a status list must be trusted by all verifiers that trust the credential's issuer (Token Status List section 11.3). A
 * status list key chain serves credentials under the same CA; otherwise the list is signed by the credential's key chain.
 * @param keyChainId of the credential configuration; absent for the tenant's default.
 * @throws Failure like `selectKeyChain`, when no key chain can sign the credential.
 */
export function listSigners(chains: readonly KeyChain[], keyChainId: string | null | undefined, now: Date): ListSigners {
  const issuer = selectKeyChain(chains, 'signing', now, keyChainId ?? undefined);
  const trustedChains = chains.filter(
    (chain) => maySign(chain) && !isCompromised(chain) && chain.active.notAfter > now && haveSameTrust(chain, issuer),
  );
  const forLists = trustedChains.filter(({ usages }) => usages.includes('statusList'));
  const defaultSigner = currentSigner(chains, { keyChainId: null }, now);
  const isDefaultTrusted = defaultSigner !== undefined && haveSameTrust(defaultSigner, issuer);
  const accepted = new Set<string | null>(trustedChains.map(({ id }) => id));
  if (isDefaultTrusted) accepted.add(null);
  if (isDefaultTrusted && defaultSigner.root !== undefined) return { preferred: null, accepted };
  return { preferred: forLists[0]?.id ?? issuer.id, accepted };
}

/**
 * A list refers to the key chain of its credentials, or to a status list key chain other than the tenant's default.
 * @throws Failure like `selectKeyChain`.
 */
export function signerOfList(chains: readonly KeyChain[], { keyChainId }: Pick<StatusList, 'keyChainId'>, now: Date): KeyChain {
  if (keyChainId === null) return selectKeyChain(chains, 'statusList', now);
  const configuredChain = chains.find(({ id }) => id === keyChainId);
  const usage = configuredChain?.usages.includes('statusList') ? 'statusList' : 'signing';
  return selectKeyChain(chains, usage, now, keyChainId);
}

/** Like `signerOfList`; undefined without a usable key chain. */
export function currentSigner(chains: readonly KeyChain[], list: Pick<StatusList, 'keyChainId'>, now: Date): KeyChain | undefined {
  try {
    return signerOfList(chains, list, now);
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}

/** True if verifiers that trust one key chain also trust the other. */
export function haveSameTrust(chain: KeyChain, otherChain: KeyChain): boolean {
  if (chain.id === otherChain.id) return true;
  return chain.root !== undefined && chain.root.certificate === otherChain.root?.certificate;
}

function maySign({ usages }: KeyChain): boolean {
  return usages.includes('statusList') || usages.includes('signing');
}
