import { findKeyChain, type KeyChain, type KeyUsage, selectKeyChain } from '../../domain/keys/key-chain.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import { includesProfile } from '../../domain/shared/finding.ts';
import { keyChainIdsOf } from '../../domain/trust-lists/entity-certificates.ts';
import { accessKeyChainsOf } from '../../domain/verification/access-key-chains.ts';
import type { TenantRepositories } from '../ports/repositories.ts';

/** A reference to a key chain. Without a usage the chain only needs to exist. */
type Reference = { readonly location: string; readonly usage?: KeyUsage };

async function referencesTo(repositories: TenantRepositories, id: string): Promise<Reference[]> {
  const { credentialConfigurations, presentationConfigurations, issuanceConfiguration } = repositories;
  const { statusLists, trustLists } = repositories;
  const references: Reference[] = [];
  for (const configuration of await credentialConfigurations.list()) {
    if (configuration.keyChainId !== id) continue;
    references.push({ location: `credential configuration ${configuration.id}`, usage: 'signing' });
  }
  for (const configuration of await presentationConfigurations.list()) {
    const location = `presentation configuration ${configuration.id}`;
    if (accessKeyChainsOf(configuration).includes(id)) references.push({ location, usage: 'access' });
    const anchors = configuration.trustAnchors ?? [];
    if (anchors.some((anchor) => 'keyChainId' in anchor && anchor.keyChainId === id)) references.push({ location });
  }
  const issuance = await issuanceConfiguration.find('default');
  if ([issuance?.signingKeyId, issuance?.chainedAs?.token.signingKeyId].includes(id)) {
    references.push({ location: 'issuance configuration', usage: 'signing' });
  }
  for (const list of await statusLists.list()) {
    const location = `status list ${list.id}`;
    // It is signed by a key chain for status lists, or by the one that signs its credentials.
    if (list.keyChainId === id) references.push({ location, usage: 'statusList' }, { location, usage: 'signing' });
  }
  for (const list of await trustLists.list()) {
    const location = `trust list ${list.id}`;
    if (list.keyChainId === id) references.push({ location, usage: 'trustList' });
    if (keyChainIdsOf(list.entities).includes(id)) references.push({ location });
  }
  return references;
}

/** @throws Failure `conflict` when anything refers to the key chain. */
export async function assertUnused(repositories: TenantRepositories, id: string): Promise<void> {
  assertUnreferenced(id, await referencesTo(repositories, id));
}

/** @throws Failure `conflict` when something uses the key chain for one of these usages. */
export async function assertUnusedFor(repositories: TenantRepositories, id: string, usages: readonly KeyUsage[]): Promise<void> {
  if (usages.length === 0) return;
  const references = await referencesTo(repositories, id);
  assertUnreferenced(
    id,
    references.filter(({ usage }) => usage !== undefined && usages.includes(usage)),
  );
}

/**
 * Checks that an internal CA is not a trust anchor before it is removed.
 * @throws Failure `conflict` when a presentation configuration trusts it.
 */
export async function assertNoAnchor({ presentationConfigurations }: TenantRepositories, id: string): Promise<void> {
  const user = (await presentationConfigurations.list()).find(({ trustAnchors = [] }) =>
    trustAnchors.some((anchor) => 'keyChainId' in anchor && anchor.keyChainId === id),
  );
  if (user === undefined) return;
  throw new Failure('conflict', `the presentation configuration ${user.id} trusts the CA of this key chain`);
}

/**
 * Checks that a default signer remains: without an explicit reference the first usable key chain of a usage signs, so the last one cannot
 * be removed while there is something to sign.
 * @param lost the usages that `chain` is about to lose.
 * @throws Failure `conflict`.
 */
export async function assertNotLast(
  repositories: TenantRepositories,
  chain: KeyChain,
  lost: readonly KeyUsage[],
  now: Date,
): Promise<void> {
  const chains = await repositories.keyChains.list();
  const otherChains = chains.filter(({ id }) => id !== chain.id);
  for (const usage of lost) {
    if (findKeyChain([chain], usage, now) === undefined || findKeyChain(otherChains, usage, now) !== undefined) continue;
    const dependent = await findDependent(repositories, usage);
    if (dependent === undefined) continue;
    const message = `the key chain ${chain.id} is the last for the usage ${usage}, which ${dependent} needs`;
    throw new Failure('conflict', message);
  }
}

/** @returns a dependent that requires a key chain of this usage, if any. */
async function findDependent(repositories: TenantRepositories, usage: KeyUsage): Promise<string | undefined> {
  const { credentialConfigurations, presentationConfigurations, statusLists, trustLists } = repositories;
  if (usage === 'access') {
    const [configuration] = await presentationConfigurations.list();
    if (configuration !== undefined) return `presentation configuration ${configuration.id}`;
    // ARF 3.0 ISSU_22 and ISSU_32
    const { profile } = await repositories.tenant.get();
    return includesProfile(profile, 'eu') ? 'the profile eu, whose metadata it signs,' : undefined;
  }
  if (usage === 'trustList') {
    const list = (await trustLists.list()).find(({ keyChainId }) => keyChainId === undefined);
    return list && `trust list ${list.id}`;
  }
  const credentials = await credentialConfigurations.list();
  const credential = credentials.find(({ statusManagement }) => usage === 'signing' || statusManagement);
  if (credential !== undefined) return `credential configuration ${credential.id}`;
  if (usage === 'signing') return undefined;
  const list = (await statusLists.list()).find(({ keyChainId }) => keyChainId === null);
  return list && `status list ${list.id}`;
}

function assertUnreferenced(id: string, references: readonly Reference[]): void {
  if (references.length === 0) return;
  const locations = [...new Set(references.map(({ location }) => location))].slice(0, 5);
  throw new Failure('conflict', `the key chain ${id} is in use by: ${locations.join(', ')}`);
}

/**
 * Checks that a configuration refers to a key chain that can sign now.
 * @throws Failure `invalid_input` at `path` for any problem of the reference.
 */
export function assertKeyChainUsable(
  chains: readonly KeyChain[],
  usage: KeyUsage,
  id: string | null | undefined,
  path: string,
  now: Date,
): void {
  if (id === null || id === undefined) return;
  try {
    selectKeyChain(chains, usage, now, id);
  } catch (error) {
    throw invalidInput(path, error instanceof Failure ? error.message : 'this key chain cannot be used');
  }
}
