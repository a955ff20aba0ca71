import { type KeyChain, selectKeyChain } from '../../domain/keys/key-chain.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import { currentSigner, haveSameTrust, listSigners, signerOfList } from '../../domain/status-lists/list-signer.ts';
import type { StatusList } from '../../domain/status-lists/status-list.ts';
import type { TenantRepositories } from '../ports/repositories.ts';

/** The configuration that a list serves, and its signer. */
export type Binding = Pick<StatusList, 'credentialConfigurationId' | 'keyChainId'>;

type Repositories = Pick<TenantRepositories, 'credentialConfigurations' | 'keyChains'>;

/**
 * Determines the signer of a list: one that readers of the configuration's credentials trust.
 * @param keyChainId undefined for the preferred one.
 * @throws Failure `invalid_input` for an unknown configuration or key chain, or an unsuitable combination.
 */
export async function bind(
  { credentialConfigurations, keyChains }: Repositories,
  credentialConfigurationId: string | null,
  keyChainId: string | null | undefined,
  now: Date,
): Promise<Binding> {
  const chains = await keyChains.list();
  if (keyChainId !== undefined) assertCanSign(chains, keyChainId, now);
  if (credentialConfigurationId === null) {
    if (keyChainId === undefined) assertCanSign(chains, null, now);
    return { credentialConfigurationId, keyChainId: keyChainId ?? null };
  }
  const configuration = await credentialConfigurations.find(credentialConfigurationId);
  if (configuration === undefined) throw invalidInput('credentialConfigurationId', 'there is no such credential configuration');
  const { preferred, accepted } = listSigners(chains, configuration.keyChainId, now);
  if (keyChainId === undefined) return { credentialConfigurationId, keyChainId: preferred };
  if (!accepted.has(keyChainId)) {
    const message = 'verifiers of these credentials do not trust this key chain: it has another CA';
    throw invalidInput('keyChainId', message);
  }
  return { credentialConfigurationId, keyChainId };
}

/**
 * Checks that readers of already issued credentials still trust the list.
 * @throws Failure `conflict`.
 */
export async function assertStillTrusted(
  { keyChains }: Pick<Repositories, 'keyChains'>,
  list: StatusList,
  newBinding: Binding,
  now: Date,
): Promise<void> {
  if (list.usedEntries === 0 || list.keyChainId === newBinding.keyChainId) return;
  const chains = await keyChains.list();
  // Includes an expired key chain.
  const namedChain = chains.find(({ id }) => id === list.keyChainId);
  const currentChain = namedChain ?? currentSigner(chains, list, now);
  if (currentChain !== undefined && haveSameTrust(currentChain, signerOfList(chains, newBinding, now))) return;
  throw new Failure('conflict', 'credentials use this list, and their verifiers do not trust the other key chain: it has another CA');
}

/** @throws Failure `invalid_input` for any problem. */
function assertCanSign(chains: readonly KeyChain[], keyChainId: string | null, now: Date): void {
  if (keyChainId === null) {
    selectKeyChain(chains, 'statusList', now);
    return;
  }
  try {
    signerOfList(chains, { keyChainId }, now);
  } catch (error) {
    throw invalidInput('keyChainId', error instanceof Failure ? error.message : 'this key chain cannot sign');
  }
}
