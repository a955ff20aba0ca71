import { type KeyChain, pickKeyChain } from '../../domain/keys/key-chain.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import { areTrustedAlike, currentSigner, listSigners, signerOfList } from '../../domain/status-lists/list-signer.ts';
import type { StatusList } from '../../domain/status-lists/status-list.ts';
import type { TenantRepositories } from '../ports/repositories.ts';

/** Whose credentials a list serves, and who signs it. */
export type Binding = Pick<StatusList, 'credentialConfigurationId' | 'keyChainId'>;

type Repositories = Pick<TenantRepositories, 'credentialConfigurations' | 'keyChains'>;

/**
 * A list that serves one configuration is signed by somebody whom readers of its credentials trust.
 * @param keyChainId undefined: any that fits.
 * @throws Failure `invalid_input` when there is no such configuration or key chain, or they do not go together.
 */
export async function bind(
  { credentialConfigurations, keyChains }: Repositories,
  credentialConfigurationId: string | null,
  keyChainId: string | null | undefined,
  now: Date,
): Promise<Binding> {
  const chains = await keyChains.list();
  if (keyChainId !== undefined) assertSigns(chains, keyChainId, now);
  if (credentialConfigurationId === null) {
    if (keyChainId === undefined) assertSigns(chains, null, now);
    return { credentialConfigurationId, keyChainId: keyChainId ?? null };
  }
  const configuration = await credentialConfigurations.find(credentialConfigurationId);
  if (configuration === undefined) throw invalidInput('credentialConfigurationId', 'there is no such credential configuration');
  const { preferred, accepted } = listSigners(chains, configuration.keyChainId, now);
  if (keyChainId === undefined) return { credentialConfigurationId, keyChainId: preferred };
  if (!accepted.has(keyChainId)) {
    const message = 'readers of these credentials do not trust this key chain: it is under another CA';
    throw invalidInput('keyChainId', message);
  }
  return { credentialConfigurationId, keyChainId };
}

/**
 * Credentials that point at a list are out there, and their readers trust who signs it today.
 * @throws Failure `conflict`.
 */
export async function assertStillTrusted(
  { keyChains }: Pick<Repositories, 'keyChains'>,
  list: StatusList,
  after: Binding,
  now: Date,
): Promise<void> {
  if (list.usedEntries === 0 || list.keyChainId === after.keyChainId) return;
  const chains = await keyChains.list();
  // Also one that has expired.
  const named = chains.find(({ id }) => id === list.keyChainId);
  const present = named ?? currentSigner(chains, list, now);
  if (present !== undefined && areTrustedAlike(present, signerOfList(chains, after, now))) return;
  throw new Failure('conflict', 'credentials use this list, and their readers do not trust the other key chain: it is under another CA');
}

/** @throws Failure `invalid_input`, whatever is wrong. */
function assertSigns(chains: readonly KeyChain[], keyChainId: string | null, now: Date): void {
  if (keyChainId === null) {
    pickKeyChain(chains, 'statusList', now);
    return;
  }
  try {
    signerOfList(chains, { keyChainId }, now);
  } catch (error) {
    throw invalidInput('keyChainId', error instanceof Failure ? error.message : 'this key chain cannot sign');
  }
}
