import type { Role } from '../clients/role.ts';
import { Failure, invalidInput } from '../shared/failure.ts';
import { assertConformsToProfile, type Finding, type Profile } from '../shared/finding.ts';
import type { KeyChain, KeyUsage } from './key-chain.ts';
import { isSameHandle } from './signing-key.ts';

/** The purpose for which relying parties trust a key: issuing credentials, or requesting presentations. */
type KeyPurpose = 'issuing' | 'access';

const PURPOSE_OF: Readonly<Record<KeyUsage, KeyPurpose>> = {
  signing: 'issuing',
  statusList: 'issuing',
  trustList: 'issuing',
  access: 'access',
};

const ROLE_OF: Readonly<Record<KeyPurpose, Role>> = { issuing: 'issuance:manage', access: 'presentation:manage' };

const WORDS: Readonly<Record<KeyPurpose, string>> = {
  issuing: 'signing, statusList and trustList, and all under their authority,',
  access: 'access, and all under their authority,',
};

type UsedChain = Pick<KeyChain, 'usages'>;

/**
 * An operator of a key chain controls everything under the same authority, because the authority certifies any key; and everything with the
 * same key. Therefore the roles for all of these are required.
 * @param touched key chains that are created, changed, deleted or used, in their old and new state.
 * @param chains current key chains of the tenant.
 * @throws Failure `forbidden` for a missing role.
 */
export function assertMayChangeKeys(
  roles: readonly Role[],
  touched: readonly (UsedChain & Partial<Pick<KeyChain, 'root' | 'active'>>)[],
  chains: readonly KeyChain[],
): void {
  const relatedChains = chains.filter((chain) => touched.some((touchedChain) => isRelated(touchedChain, chain)));
  for (const purpose of purposesOf([...touched, ...relatedChains])) {
    const role = ROLE_OF[purpose];
    if (!roles.includes(role)) throw new Failure('forbidden', `key chains for ${WORDS[purpose]} require the role ${role}`);
  }
}

/**
 * Under the profile `eu` an authority certifies keys for its own purpose only: relying parties that trust it for credentials would trust
 * the other keys as well. Without the profile, `findSharedAuthorityProblems` warns.
 * @param root of the key chain that is used as authority.
 * @param path of the property in the request.
 * @throws Failure `invalid_input`.
 */
export function assertAuthorityPurpose(
  usages: readonly KeyUsage[],
  root: KeyChain['root'],
  { all: chains, path, profile }: CertificationContext,
): void {
  const purposes = purposesOf(chainsUnder(root, chains));
  if (purposes.size === 0) throw invalidInput(path, 'the authority of a key chain without usages certifies no other key');
  if (usages.length === 0) throw invalidInput(path, 'a key without usages requires its own authority');
  const foreign = usages.find((usage) => !purposes.has(PURPOSE_OF[usage]));
  if (foreign !== undefined) assertConformsToProfile(profile, [sharedAuthority(path)]);
}

type CertificationContext = { readonly all: readonly KeyChain[]; readonly path: string; readonly profile: Profile | null };

/**
 * Under the profile `eu` the key chains of an authority retain the purpose for which it is trusted.
 * @param changedChain still under its authority unless its certificates are external from now on.
 * @throws Failure `invalid_input`.
 */
export function assertPurposeUnchanged(
  previousChain: KeyChain,
  changedChain: KeyChain,
  { all: chains, path, profile }: CertificationContext,
): void {
  const { root } = changedChain;
  if (root === undefined || previousChain.usages.length === 0) return;
  const purposes = purposesOf(chainsUnder(root, chains));
  const siblings = chainsUnder(root, chains).filter(({ id }) => id !== changedChain.id);
  const nextPurposes = purposesOf([...siblings, changedChain]);
  if (purposes.size === nextPurposes.size && [...purposes].every((purpose) => nextPurposes.has(purpose))) return;
  // A key chain without usages violates this as well: it could get the other purpose afterwards.
  assertConformsToProfile(profile, [sharedAuthority(path)]);
}

/** Warns about key chains for issuing and for access under one authority, whose certificates are trusted for both. */
export function findSharedAuthorityProblems(chain: KeyChain, chains: readonly KeyChain[]): Finding[] {
  const siblings = chainsUnder(chain.root, chains).filter(({ id }) => id !== chain.id);
  return purposesOf([chain, ...siblings]).size < 2 ? [] : [sharedAuthority('usages')];
}

function sharedAuthority(member: string): Finding {
  return {
    rule: 'ETSI TS 119 602 annexes D and F',
    member,
    concerns: 'European wallets and verifiers, which use separate lists of authorities for issuing and for access',
    message: 'one authority certifies keys for access and keys for signing, statusList or trustList',
    change: 'create another key chain, with an authority of its own, for access (POST /key-chain)',
    refusedBy: ['eu'],
  };
}

function purposesOf(chains: readonly UsedChain[]): ReadonlySet<KeyPurpose> {
  return new Set(chains.flatMap(({ usages }) => usages.map((usage) => PURPOSE_OF[usage])));
}

function chainsUnder(root: KeyChain['root'], chains: readonly KeyChain[]): readonly KeyChain[] {
  return chains.filter((chain) => isSameRoot(root, chain.root));
}

function isRelated({ root, active }: Partial<Pick<KeyChain, 'root' | 'active'>>, otherChain: KeyChain): boolean {
  return isSameRoot(root, otherChain.root) || (active !== undefined && isSameHandle(active.key.handle, otherChain.active.key.handle));
}

/** Compares certificates, because the key may move to another provider. */
function isSameRoot(root: KeyChain['root'], otherRoot: KeyChain['root']): boolean {
  return root !== undefined && root.certificate === otherRoot?.certificate;
}
