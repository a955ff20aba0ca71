import type { Role } from '../clients/role.ts';
import { Failure, invalidInput } from '../shared/failure.ts';
import { assertWithin, type Finding, type Profile } from '../shared/finding.ts';
import type { KeyChain, KeyUsage } from './key-chain.ts';
import { isSameHandle } from './signing-key.ts';

/** What others trust a key for: what the tenant issues, or what it asks of wallets. */
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

type Used = Pick<KeyChain, 'usages'>;

/**
 * Whoever has a say over a key chain has it over everything under the same authority, since that certifies whatever it is
 * told to; and over everything with the same key.
 * @param touched the key chains that are made, changed, removed or signed with, as they are and as they are to be.
 * @param all the tenant's key chains as they are.
 * @throws Failure `forbidden` when a role is missing that one of these demands.
 */
export function assertMayTouch(
  roles: readonly Role[],
  touched: readonly (Used & Partial<Pick<KeyChain, 'root' | 'active'>>)[],
  all: readonly KeyChain[],
): void {
  const related = all.filter((chain) => touched.some((one) => isRelated(one, chain)));
  for (const purpose of purposesOf([...touched, ...related])) {
    const role = ROLE_OF[purpose];
    if (!roles.includes(role)) throw new Failure('forbidden', `key chains for ${WORDS[purpose]} need the role ${role}`);
  }
}

/**
 * Under the profile `eu` an authority certifies keys for its own purpose only: who trusts it for credentials would trust them, too.
 * Without the profile, `findSharedAuthorityProblems` warns.
 * @param root of the key chain that is named as authority.
 * @param path of the property that is at fault.
 * @throws Failure `invalid_input`.
 */
export function assertCertifiedFor(usages: readonly KeyUsage[], root: KeyChain['root'], { all, path, profile }: Certification): void {
  const purposes = purposesOf(under(root, all));
  if (purposes.size === 0) throw invalidInput(path, 'the authority of a key chain without usages certifies no other key');
  if (usages.length === 0) throw invalidInput(path, 'a key without usages is certified by an authority of its own');
  const foreign = usages.find((usage) => !purposes.has(PURPOSE_OF[usage]));
  if (foreign !== undefined) assertWithin(profile, [sharedAuthority(path)]);
}

type Certification = {
  /** The key chains of the tenant. */
  readonly all: readonly KeyChain[];
  readonly path: string;
  readonly profile: Profile | null;
};

/**
 * Under the profile `eu` the key chains of an authority go on to serve what it was trusted for, and nothing else.
 * @param after the key chain as it is to be; under its authority, unless its certificates come from outside from now on.
 * @throws Failure `invalid_input`.
 */
export function assertKeepsPurpose(before: KeyChain, after: KeyChain, { all, path, profile }: Certification): void {
  const { root } = after;
  if (root === undefined || before.usages.length === 0) return;
  const purposes = purposesOf(under(root, all));
  const others = under(root, all).filter(({ id }) => id !== after.id);
  const next = purposesOf([...others, after]);
  if (purposes.size === next.size && [...purposes].every((purpose) => next.has(purpose))) return;
  // Also when it serves nothing from now on: it could serve the other purpose afterwards.
  assertWithin(profile, [sharedAuthority(path)]);
}

/** Key chains for issuing and for access under one authority, whose certificates readers trust for both. */
export function findSharedAuthorityProblems(chain: KeyChain, all: readonly KeyChain[]): Finding[] {
  const others = under(chain.root, all).filter(({ id }) => id !== chain.id);
  return purposesOf([chain, ...others]).size < 2 ? [] : [sharedAuthority('usages')];
}

function sharedAuthority(member: string): Finding {
  return {
    rule: 'ETSI TS 119 602 annexes D and F',
    member,
    concerns: 'European wallets and verifiers, which list authorities for issuing and for access separately',
    message: 'one authority certifies keys for access and keys for signing, statusList or trustList',
    change: 'create another key chain, with an authority of its own, for access (POST /key-chain)',
    refusedBy: ['eu'],
  };
}

function purposesOf(chains: readonly Used[]): ReadonlySet<KeyPurpose> {
  return new Set(chains.flatMap(({ usages }) => usages.map((usage) => PURPOSE_OF[usage])));
}

function under(root: KeyChain['root'], all: readonly KeyChain[]): readonly KeyChain[] {
  return all.filter((chain) => isSameRoot(root, chain.root));
}

function isRelated({ root, active }: Partial<Pick<KeyChain, 'root' | 'active'>>, other: KeyChain): boolean {
  return isSameRoot(root, other.root) || (active !== undefined && isSameHandle(active.key.handle, other.active.key.handle));
}

/** By the certificate: the key may be moved to another provider. */
function isSameRoot(one: KeyChain['root'], other: KeyChain['root']): boolean {
  return one !== undefined && one.certificate === other?.certificate;
}
