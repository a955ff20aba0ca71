import type { CompiledCredentialQuery } from '../../domain/dcql/compile.ts';
import type { AuthorityEvidence } from '../../domain/dcql/match.ts';
import { keyIdentifierOf, parseCertificate } from '../../domain/formats/der/certificate.ts';
import type { CertificatePurpose } from '../../domain/keys/certificate-purpose.ts';
import type { Certificates, TrustAnchor } from '../ports/certificates.ts';
import { getOrCreate } from '../tenant-cache/get-or-create.ts';
import type { IssuerTrust } from './issuer-trust.ts';

export type TrustedChain = {
  /** DER in standard base64, leaf first. */
  readonly chain: readonly string[];
  readonly purpose: CertificatePurpose;
};

/** Authorities that a query requires; undefined for any trusted issuer. */
type Authorities = CompiledCredentialQuery['authorities'];

/** The required authorities that vouch for a chain. Only kinds that the query contains are evaluated. */
export function authorityOf(
  certificates: Certificates,
  trust: IssuerTrust,
  authorities: Authorities,
  trustedChain: TrustedChain,
  now: Date,
): AuthorityEvidence {
  const queriedKeyIds = valuesOfType(authorities, 'aki');
  const queriesList = valuesOfType(authorities, 'etsi_tl').length > 0;
  return {
    authorityKeyIds: keyIdsOf(certificates, trust, queriedKeyIds, trustedChain, now),
    trustListUris: queriesList ? listsOf(certificates, trust, trustedChain, now) : [],
    federationEntityIds: [],
  };
}

export function demandedLists(authorities: Authorities): ReadonlySet<string> | undefined {
  const lists = valuesOfType(authorities, 'etsi_tl');
  return lists.length === 0 ? undefined : new Set(lists);
}

function valuesOfType(authorities: Authorities, type: 'aki' | 'etsi_tl'): readonly string[] {
  return (authorities ?? []).filter((authority) => authority.type === type).flatMap(({ values }) => [...values]);
}

/** The lists that vouch for a chain (OpenID4VP 1.0 section 6.1.1, `etsi_tl`). */
function listsOf(certificates: Certificates, { lists }: IssuerTrust, { chain, purpose }: TrustedChain, now: Date): readonly string[] {
  return lists.flatMap(({ uri, anchors }) => (certificates.verifyChain(chain, anchors, now, { purpose }).trusted ? [uri] : []));
}

/**
 * The key identifiers that belong to an authority of the validated chain: the anchor, or an intermediate (OpenID4VP 1.0
 * section 6.1.1.1). The identifier of an anchor belongs to that anchor alone, because an authority below another anchor could claim it.
 */
function keyIdsOf(
  certificates: Certificates,
  trust: IssuerTrust,
  queriedKeyIds: readonly string[],
  { chain, purpose }: TrustedChain,
  now: Date,
): readonly string[] {
  if (queriedKeyIds.length === 0) return [];
  const anchorsByKey = getOrCreate(ANCHORS_BY_KEY_ID, trust, () => anchorsByKeyId(trust.anchors));
  const verdict = certificates.verifyChain(chain, trust.anchors, now, { purpose });
  const intermediateKeyIds = new Set(verdict.trusted ? chain.slice(1, verdict.below).flatMap(keyIdIn) : []);
  return queriedKeyIds.filter((keyId) => {
    const anchors = anchorsByKey.get(keyId);
    if (anchors === undefined) return intermediateKeyIds.has(keyId);
    return certificates.verifyChain(chain, anchors, now, { purpose }).trusted;
  });
}

function keyIdIn(base64: string): readonly string[] {
  const certificate = parseCertificate(Buffer.from(base64, 'base64'));
  return certificate === undefined ? [] : [keyIdentifierOf(certificate)];
}

const ANCHORS_BY_KEY_ID = new WeakMap<IssuerTrust, ReadonlyMap<string, readonly TrustAnchor[]>>();

/**
 * An identifier that several keys claim, as certificates of lists may, belongs to the key that it was derived from; if it
 * was derived from none of them, it is not used.
 */
function anchorsByKeyId(anchors: readonly TrustAnchor[]): ReadonlyMap<string, readonly TrustAnchor[]> {
  const parsedAnchors = anchors.flatMap((anchor) => {
    const certificate = parseCertificate(Buffer.from(anchor.certificate, 'base64'));
    return certificate && [{ anchor, keyId: keyIdentifierOf(certificate), keyHash: certificate.keyHash }];
  });
  const claims = Map.groupBy(
    parsedAnchors.filter((entry) => entry !== undefined),
    ({ keyId }) => keyId,
  );
  return new Map(
    [...claims].map(([keyId, sameIdAnchors]) => {
      const isOneKey = new Set(sameIdAnchors.map(({ keyHash }) => keyHash)).size === 1;
      const owners = isOneKey ? sameIdAnchors : sameIdAnchors.filter(({ keyHash }) => keyHash === keyId);
      return [keyId, owners.map(({ anchor }) => anchor)];
    }),
  );
}
