import type { CompiledCredentialQuery } from '../../domain/dcql/compile.ts';
import type { AuthorityEvidence } from '../../domain/dcql/match.ts';
import { keyIdentifierOf, parseCertificate } from '../../domain/formats/der/certificate.ts';
import type { CertificatePurpose } from '../../domain/keys/certificate-purpose.ts';
import type { Certificates, TrustAnchor } from '../ports/certificates.ts';
import { madeOnce } from '../tenant-cache/made-once.ts';
import type { IssuerTrust } from './issuer-trust.ts';

/** A chain that a verifier trusts already. */
export type TrustedChain = {
  /** DER in standard base64, leaf first. */
  readonly chain: readonly string[];
  readonly purpose: CertificatePurpose;
};

/** What a query demands of an issuer; undefined: nothing but being trusted. */
type Authorities = CompiledCredentialQuery['authorities'];

/** What of the demanded authorities vouches for a chain. Nothing is looked for that the query does not ask for. */
export function authorityOf(
  certificates: Certificates,
  trust: IssuerTrust,
  authorities: Authorities,
  trusted: TrustedChain,
  now: Date,
): AuthorityEvidence {
  const asked = demanded(authorities, 'aki');
  const asksForList = demanded(authorities, 'etsi_tl').length > 0;
  return {
    authorityKeyIds: keyIdsOf(certificates, trust, asked, trusted, now),
    trustListUris: asksForList ? listsOf(certificates, trust, trusted, now) : [],
    federationEntityIds: [],
  };
}

/** The lists that a query demands an issuer of, if it demands any. */
export function demandedLists(authorities: Authorities): ReadonlySet<string> | undefined {
  const lists = demanded(authorities, 'etsi_tl');
  return lists.length === 0 ? undefined : new Set(lists);
}

function demanded(authorities: Authorities, type: 'aki' | 'etsi_tl'): readonly string[] {
  return (authorities ?? []).filter((one) => one.type === type).flatMap(({ values }) => [...values]);
}

/** The lists that vouch for a chain (OpenID4VP 1.0 section 6.1.1, `etsi_tl`). */
function listsOf(certificates: Certificates, { lists }: IssuerTrust, { chain, purpose }: TrustedChain, now: Date): readonly string[] {
  return lists.flatMap(({ uri, anchors }) => (certificates.verifyChain(chain, anchors, now, { purpose }).trusted ? [uri] : []));
}

/**
 * Which of these key identifiers belong to an authority of the validated chain: the anchor, or one between it and the signer (OpenID4VP 1.0
 * section 6.1.1.1). The identifier of an anchor belongs to that anchor alone, because an authority below another anchor could claim it.
 */
function keyIdsOf(
  certificates: Certificates,
  trust: IssuerTrust,
  asked: readonly string[],
  { chain, purpose }: TrustedChain,
  now: Date,
): readonly string[] {
  if (asked.length === 0) return [];
  const known = madeOnce(ANCHORS_BY_KEY_ID, trust, () => anchorsByKeyId(trust.anchors));
  const verdict = certificates.verifyChain(chain, trust.anchors, now, { purpose });
  const between = new Set(verdict.trusted ? chain.slice(1, verdict.below).flatMap(keyIdIn) : []);
  return asked.filter((keyId) => {
    const anchors = known.get(keyId);
    if (anchors === undefined) return between.has(keyId);
    return certificates.verifyChain(chain, anchors, now, { purpose }).trusted;
  });
}

function keyIdIn(base64: string): readonly string[] {
  const certificate = parseCertificate(Buffer.from(base64, 'base64'));
  return certificate === undefined ? [] : [keyIdentifierOf(certificate)];
}

const ANCHORS_BY_KEY_ID = new WeakMap<IssuerTrust, ReadonlyMap<string, readonly TrustAnchor[]>>();

/**
 * An identifier that several keys claim, as certificates of lists may, belongs to the key that it was made of; if it
 * was made of none of them, to nobody.
 */
function anchorsByKeyId(anchors: readonly TrustAnchor[]): ReadonlyMap<string, readonly TrustAnchor[]> {
  const read = anchors.flatMap((anchor) => {
    const certificate = parseCertificate(Buffer.from(anchor.certificate, 'base64'));
    return certificate && [{ anchor, keyId: keyIdentifierOf(certificate), keyHash: certificate.keyHash }];
  });
  const claims = Map.groupBy(
    read.filter((one) => one !== undefined),
    ({ keyId }) => keyId,
  );
  return new Map(
    [...claims].map(([keyId, alike]) => {
      const isOne = new Set(alike.map(({ keyHash }) => keyHash)).size === 1;
      const owners = isOne ? alike : alike.filter(({ keyHash }) => keyHash === keyId);
      return [keyId, owners.map(({ anchor }) => anchor)];
    }),
  );
}
