import { findKeyChain, type KeyChain, type KeyUsage, pickKeyChain } from '../../domain/keys/key-chain.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import { holdsTo } from '../../domain/shared/finding.ts';
import { keyChainIdsOf } from '../../domain/trust-lists/entity-certificates.ts';
import { accessKeyChainsOf } from '../../domain/verification/access-key-chains.ts';
import type { TenantRepositories } from '../ports/repositories.ts';

/** A place that names a key chain. Without a usage it only needs the chain to be there. */
type Reference = { readonly place: string; readonly usage?: KeyUsage };

/** Everything of the tenant that names this key chain by its id. */
async function referencesTo(repositories: TenantRepositories, id: string): Promise<Reference[]> {
  const { credentialConfigurations, presentationConfigurations, issuanceConfiguration } = repositories;
  const { statusLists, trustLists } = repositories;
  const found: Reference[] = [];
  for (const configuration of await credentialConfigurations.list()) {
    if (configuration.keyChainId !== id) continue;
    found.push({ place: `credential configuration ${configuration.id}`, usage: 'signing' });
  }
  for (const configuration of await presentationConfigurations.list()) {
    const place = `presentation configuration ${configuration.id}`;
    if (accessKeyChainsOf(configuration).includes(id)) found.push({ place, usage: 'access' });
    const anchors = configuration.trustAnchors ?? [];
    if (anchors.some((anchor) => 'keyChainId' in anchor && anchor.keyChainId === id)) found.push({ place });
  }
  const issuance = await issuanceConfiguration.find('default');
  if ([issuance?.signingKeyId, issuance?.chainedAs?.token.signingKeyId].includes(id)) {
    found.push({ place: 'issuance configuration', usage: 'signing' });
  }
  for (const list of await statusLists.list()) {
    const place = `status list ${list.id}`;
    // It is signed by a key chain for status lists, or by the one that signs its credentials.
    if (list.keyChainId === id) found.push({ place, usage: 'statusList' }, { place, usage: 'signing' });
  }
  for (const list of await trustLists.list()) {
    const place = `trust list ${list.id}`;
    if (list.keyChainId === id) found.push({ place, usage: 'trustList' });
    if (keyChainIdsOf(list.entities).includes(id)) found.push({ place });
  }
  return found;
}

/** @throws Failure `conflict` when anything names the key chain. */
export async function assertUnused(repositories: TenantRepositories, id: string): Promise<void> {
  assertUnreferenced(id, await referencesTo(repositories, id));
}

/** @throws Failure `conflict` when something needs the key chain for one of these usages. */
export async function assertUnusedFor(repositories: TenantRepositories, id: string, usages: readonly KeyUsage[]): Promise<void> {
  if (usages.length === 0) return;
  const references = await referencesTo(repositories, id);
  assertUnreferenced(
    id,
    references.filter(({ usage }) => usage !== undefined && usages.includes(usage)),
  );
}

/**
 * Nothing may rest on an internal CA that goes.
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
 * Whatever names no key chain is signed by the first usable one of its usage, so the last of these has to stay while
 * there is something to sign.
 * @param lost the usages that `chain` is about to lose.
 * @throws Failure `conflict`.
 */
export async function assertNotLast(
  repositories: TenantRepositories,
  chain: KeyChain,
  lost: readonly KeyUsage[],
  now: Date,
): Promise<void> {
  const all = await repositories.keyChains.list();
  const others = all.filter(({ id }) => id !== chain.id);
  for (const usage of lost) {
    if (findKeyChain([chain], usage, now) === undefined || findKeyChain(others, usage, now) !== undefined) continue;
    const need = await needOf(repositories, usage);
    if (need === undefined) continue;
    const message = `the key chain ${chain.id} is the last for the usage ${usage}, which ${need} needs`;
    throw new Failure('conflict', message);
  }
}

/** @returns what cannot do without a key chain of this usage, if anything. */
async function needOf(repositories: TenantRepositories, usage: KeyUsage): Promise<string | undefined> {
  const { credentialConfigurations, presentationConfigurations, statusLists, trustLists } = repositories;
  if (usage === 'access') {
    const [first] = await presentationConfigurations.list();
    if (first !== undefined) return `presentation configuration ${first.id}`;
    // ARF 3.0 ISSU_22 and ISSU_32
    const { profile } = await repositories.tenant.get();
    return holdsTo(profile, 'eu') ? 'the profile eu, whose metadata it signs,' : undefined;
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
  const places = [...new Set(references.map(({ place }) => place))].slice(0, 5);
  throw new Failure('conflict', `the key chain ${id} is in use by: ${places.join(', ')}`);
}

/**
 * A configuration may only name a key chain that could sign now.
 * @throws Failure `invalid_input` at `path`, whatever is wrong with the reference.
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
    pickKeyChain(chains, usage, now, id);
  } catch (error) {
    throw invalidInput(path, error instanceof Failure ? error.message : 'this key chain cannot be used');
  }
}
