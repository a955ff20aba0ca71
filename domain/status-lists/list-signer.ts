import { isCompromised, type KeyChain, pickKeyChain } from '../keys/key-chain.ts';
import { Failure } from '../shared/failure.ts';
import type { StatusList } from './status-list.ts';

/** Who may sign the lists of one credential: ids of key chains, null standing for the tenant's default. */
export type ListSigners = {
  /** Of a list that is made for it. */
  readonly preferred: string | null;
  readonly accepted: ReadonlySet<string | null>;
};

/**
 * Who signs the list of a credential must be known to all who trust the credential's issuer (Token Status List section 11.3). A status list
 * chain serves credentials under the same CA; a credential of another CA has its list signed by its own key chain.
 * @param keyChainId of the credential configuration; absent for the tenant's default.
 * @throws Failure as `pickKeyChain`, when nothing could sign the credential.
 */
export function listSigners(chains: readonly KeyChain[], keyChainId: string | null | undefined, now: Date): ListSigners {
  const issuer = pickKeyChain(chains, 'signing', now, keyChainId ?? undefined);
  const trusted = chains.filter(
    (chain) => maySign(chain) && !isCompromised(chain) && chain.active.notAfter > now && areTrustedAlike(chain, issuer),
  );
  const forLists = trusted.filter(({ usages }) => usages.includes('statusList'));
  const standard = currentSigner(chains, { keyChainId: null }, now);
  const isStandardTrusted = standard !== undefined && areTrustedAlike(standard, issuer);
  const accepted = new Set<string | null>(trusted.map(({ id }) => id));
  if (isStandardTrusted) accepted.add(null);
  if (isStandardTrusted && standard.root !== undefined) return { preferred: null, accepted };
  return { preferred: forLists[0]?.id ?? issuer.id, accepted };
}

/**
 * A list names the key chain of its credentials, or a status list chain other than the tenant's default.
 * @throws Failure as `pickKeyChain`.
 */
export function signerOfList(chains: readonly KeyChain[], { keyChainId }: Pick<StatusList, 'keyChainId'>, now: Date): KeyChain {
  if (keyChainId === null) return pickKeyChain(chains, 'statusList', now);
  const named = chains.find(({ id }) => id === keyChainId);
  const usage = named?.usages.includes('statusList') ? 'statusList' : 'signing';
  return pickKeyChain(chains, usage, now, keyChainId);
}

/** The same, or undefined when there is none that could sign now. */
export function currentSigner(chains: readonly KeyChain[], list: Pick<StatusList, 'keyChainId'>, now: Date): KeyChain | undefined {
  try {
    return signerOfList(chains, list, now);
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}

/** Who trusts what the one signed trusts what the other signs. */
export function areTrustedAlike(one: KeyChain, other: KeyChain): boolean {
  if (one.id === other.id) return true;
  return one.root !== undefined && one.root.certificate === other.root?.certificate;
}

function maySign({ usages }: KeyChain): boolean {
  return usages.includes('statusList') || usages.includes('signing');
}
