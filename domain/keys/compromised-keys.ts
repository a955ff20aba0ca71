import { thumbprint } from '../shared/jwk.ts';
import { type KeyChain, type KeyLeaf, leavesOf } from './key-chain.ts';

/** A certificate of an internal CA; both certificates as DER in standard base64. */
export type IssuedCertificate = { readonly root: string; readonly certificate: string };

/** The tenant's record of a public key, which outlives its key chains: its compromise, and its certificates of deleted key chains. */
export type RecordedKey = {
  /** RFC 7638, SHA-256. */
  readonly thumbprint: string;
  /** Null for a key that is not compromised. */
  readonly compromisedAt: Date | null;
  /** Unexpired certificates of deleted key chains. */
  readonly certificates: readonly IssuedCertificate[];
};

/** Times of compromise by thumbprint of the public key. */
export type CompromisedKeys = ReadonlyMap<string, Date>;

/**
 * Compromise applies to the public key: it affects every leaf with the same key.
 * @param records of the tenant, if loaded.
 */
export function compromisedKeys(chains: readonly KeyChain[], records: readonly RecordedKey[] = []): CompromisedKeys {
  const marks: (readonly [string, Date])[] = [
    ...records.flatMap(({ thumbprint: key, compromisedAt }) => (compromisedAt === null ? [] : [[key, compromisedAt] as const])),
    ...chains
      .flatMap(leavesOf)
      .flatMap(({ key, revokedAt }) => (revokedAt === undefined ? [] : [[thumbprint(key.publicJwk), revokedAt] as const])),
  ];
  const compromised = new Map<string, Date>();
  for (const [key, compromisedAt] of marks) {
    const earliest = compromised.get(key);
    if (earliest === undefined || compromisedAt < earliest) compromised.set(key, compromisedAt);
  }
  return compromised;
}

/** @returns the same array if nothing changes. */
export function markCompromisedLeaves(
  chains: readonly KeyChain[],
  compromised: CompromisedKeys = compromisedKeys(chains),
): readonly KeyChain[] {
  return compromised.size === 0 ? chains : chains.map((chain) => withMarks(chain, compromised));
}

/** Marks each leaf with a compromised key; returns the key chain itself if nothing changes. */
export function withMarks(chain: KeyChain, compromised: CompromisedKeys): KeyChain {
  const mark = <Leaf extends KeyLeaf>(leaf: Leaf): Leaf => {
    const compromisedAt = compromised.get(thumbprint(leaf.key.publicJwk));
    return compromisedAt === undefined || leaf.revokedAt !== undefined ? leaf : { ...leaf, revokedAt: compromisedAt };
  };
  const { active, former: previousLeaves = [] } = chain;
  const marks = { active: mark(active), former: previousLeaves.map(mark) };
  const isSame = marks.active === active && marks.former.every((leaf, index) => leaf === previousLeaves[index]);
  if (isSame) return chain;
  return { ...chain, active: marks.active, ...(chain.former !== undefined && { former: marks.former }) };
}

export function chainsOfPublicKey(chains: readonly KeyChain[], key: string): readonly KeyChain[] {
  return chains.filter((chain) => leavesOf(chain).some((leaf) => thumbprint(leaf.key.publicJwk) === key));
}

/** Certificates of internal CAs for the leaves of a key chain, with the thumbprint of the key. */
export function issuedCertificates(chain: KeyChain): readonly (IssuedCertificate & { readonly thumbprint: string })[] {
  const { root, active, former: previousLeaves = [] } = chain;
  const leaves = [{ ...active, root: root?.certificate }, ...previousLeaves];
  return leaves.flatMap(({ root: issuer, key, certificates, documentSigner = [] }) =>
    issuer === undefined
      ? []
      : [certificates[0], documentSigner[0]].flatMap((certificate) =>
          certificate === undefined ? [] : [{ root: issuer, certificate, thumbprint: thumbprint(key.publicJwk) }],
        ),
  );
}
