import { thumbprint } from '../shared/jwk.ts';
import { type KeyChain, type KeyLeaf, leavesOf } from './key-chain.ts';

/** A certificate that an internal authority issued, both as DER in standard base64. */
export type IssuedCertificate = { readonly root: string; readonly certificate: string };

/**
 * What the tenant keeps of a public key beyond the life of its key chains: whether it is compromised, and which of its
 * certificates went with a key chain that was removed.
 */
export type RecordedKey = {
  /** RFC 7638, SHA-256. */
  readonly thumbprint: string;
  /** null for a key that is not compromised. */
  readonly compromisedAt: Date | null;
  /** Certificates that have not expired, of key chains that were removed. */
  readonly certificates: readonly IssuedCertificate[];
};

/** Thumbprints of compromised public keys, with the time since when each is. */
export type CompromisedKeys = ReadonlyMap<string, Date>;

/**
 * Compromise belongs to the public key: one leaf that is marked marks each leaf with the same key.
 * @param records of the tenant, where they are at hand.
 */
export function compromisedKeys(chains: readonly KeyChain[], records: readonly RecordedKey[] = []): CompromisedKeys {
  const marked: (readonly [string, Date])[] = [
    ...records.flatMap(({ thumbprint: key, compromisedAt }) => (compromisedAt === null ? [] : [[key, compromisedAt] as const])),
    ...chains
      .flatMap(leavesOf)
      .flatMap(({ key, revokedAt }) => (revokedAt === undefined ? [] : [[thumbprint(key.publicJwk), revokedAt] as const])),
  ];
  const found = new Map<string, Date>();
  for (const [key, since] of marked) {
    const known = found.get(key);
    if (known === undefined || since < known) found.set(key, since);
  }
  return found;
}

/** @returns the same array where nothing is to be marked. */
export function withCompromisedLeaves(
  chains: readonly KeyChain[],
  compromised: CompromisedKeys = compromisedKeys(chains),
): readonly KeyChain[] {
  return compromised.size === 0 ? chains : chains.map((chain) => withMarks(chain, compromised));
}

/** The key chain with each leaf marked whose key is compromised; itself where there is none to mark. */
export function withMarks(chain: KeyChain, compromised: CompromisedKeys): KeyChain {
  const mark = <Leaf extends KeyLeaf>(leaf: Leaf): Leaf => {
    const since = compromised.get(thumbprint(leaf.key.publicJwk));
    return since === undefined || leaf.revokedAt !== undefined ? leaf : { ...leaf, revokedAt: since };
  };
  const { active, former = [] } = chain;
  const marked = { active: mark(active), former: former.map(mark) };
  const isSame = marked.active === active && marked.former.every((leaf, index) => leaf === former[index]);
  if (isSame) return chain;
  return { ...chain, active: marked.active, ...(chain.former !== undefined && { former: marked.former }) };
}

/** Key chains that sign, or once signed, with this public key. */
export function chainsOfPublicKey(chains: readonly KeyChain[], key: string): readonly KeyChain[] {
  return chains.filter((chain) => leavesOf(chain).some((leaf) => thumbprint(leaf.key.publicJwk) === key));
}

/** What the internal authorities issued for the leaves of a key chain, by the thumbprint of the key. */
export function issuedCertificates(chain: KeyChain): readonly (IssuedCertificate & { readonly thumbprint: string })[] {
  const { root, active, former = [] } = chain;
  const leaves = [{ ...active, root: root?.certificate }, ...former];
  return leaves.flatMap(({ root: issuer, key, certificates, documentSigner = [] }) =>
    issuer === undefined
      ? []
      : [certificates[0], documentSigner[0]].flatMap((certificate) =>
          certificate === undefined ? [] : [{ root: issuer, certificate, thumbprint: thumbprint(key.publicJwk) }],
        ),
  );
}
