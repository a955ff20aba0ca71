import type { RefusalReason } from '../shared/refusal.ts';
import type { CompiledAuthority, CompiledClaim, CompiledCredentialQuery } from './compile.ts';
import { type ClaimsPath, type IsUndisclosed, selectClaims, selectElement } from './path.ts';

/** Verified data about the issuer of a credential. */
export type AuthorityEvidence = {
  /** The keyIdentifier of the AuthorityKeyIdentifier of each certificate in the chain, base64url. */
  readonly authorityKeyIds: readonly string[];
  /** Addresses of the trusted lists that contain a certificate of the chain. */
  readonly trustListUris: readonly string[];
  /** Entity identifiers on a verified federation trust path. */
  readonly federationEntityIds: readonly string[];
};

/** A presentation after all cryptographic checks. */
export type PresentedCredential = {
  readonly format: string;
  /** Its `vct` and the types that it verifiably extends, or its `docType` alone. */
  readonly types: readonly string[];
  readonly holderBound: boolean;
  /** SD-JWT: the processed payload, with placeholders of undisclosed array elements. mdoc: namespaces of JSON values. */
  readonly claims: Readonly<Record<string, unknown>>;
  /** SD-JWT: the signed payload before disclosures are applied. mdoc: empty. */
  readonly alwaysVisible: Readonly<Record<string, unknown>>;
  readonly authority: AuthorityEvidence;
};

/** `paths`: the requested claims that were found, `undefined` for a query without claims. */
export type Match = { readonly matched: true; readonly paths: readonly ClaimsPath[] | undefined };
/** `detail` contains the path of the claim, for the operator's report. */
export type Mismatch = { readonly matched: false; readonly reason: RefusalReason; readonly detail?: string };

const EVIDENCE_OF_TYPE: ReadonlyMap<string, keyof AuthorityEvidence> = new Map([
  ['aki', 'authorityKeyIds'],
  ['etsi_tl', 'trustListUris'],
  ['openid_federation', 'federationEntityIds'],
]);

/** Matches a verified credential against a credential query (OpenID4VP 1.0 sections 6.1 to 6.4, 8.6). */
export function matchCredential(
  query: CompiledCredentialQuery,
  credential: PresentedCredential,
  isUndisclosed: IsUndisclosed,
): Match | Mismatch {
  // OpenID4VP 1.0 section 6.1: the format is the query's, never the presentation's.
  if (credential.format !== query.format) return mismatch('format_mismatch');
  // OpenID4VP 1.0 section 6.1: binding is required unless the query waives it.
  if (query.holderBindingRequired && !credential.holderBound) return mismatch('holder_binding_missing');
  // OpenID4VP 1.0 appendices B.2.3 and B.3.5: exact strings.
  if (!credential.types.some((type) => query.types.has(type))) return mismatch('type_mismatch');
  // OpenID4VP 1.0 section 6.1.1: one entry suffices.
  if (query.authorities !== undefined && !query.authorities.some((a) => isMet(a, credential.authority))) {
    return mismatch('untrusted_authority');
  }
  return matchClaims(query, credential, isUndisclosed);
}

function mismatch(reason: RefusalReason, detail?: string): Mismatch {
  return detail === undefined ? { matched: false, reason } : { matched: false, reason, detail };
}

/** A condition of an unknown type is never satisfied. */
function isMet({ type, values }: CompiledAuthority, evidence: AuthorityEvidence): boolean {
  const kind = EVIDENCE_OF_TYPE.get(type);
  return kind !== undefined && evidence[kind].some((value) => values.has(value));
}

function matchClaims(query: CompiledCredentialQuery, credential: PresentedCredential, isUndisclosed: IsUndisclosed): Match | Mismatch {
  if (query.claimSets === undefined) return { matched: true, paths: undefined };
  // Sets share their claims; each claim is evaluated once.
  const faults = new Map<CompiledClaim, Mismatch | undefined>();
  const faultOf = (claim: CompiledClaim): Mismatch | undefined => {
    if (!faults.has(claim)) faults.set(claim, findMismatch(claim, credential, isUndisclosed));
    return faults.get(claim);
  };
  let firstMismatch: Mismatch | undefined;
  // OpenID4VP 1.0 section 6.4.1: one complete set is sufficient; the order is a preference only.
  for (const claims of query.claimSets) {
    const mismatchingClaim = claims.find((claim) => faultOf(claim) !== undefined);
    if (mismatchingClaim === undefined) return { matched: true, paths: claims.map(({ path }) => path) };
    firstMismatch ??= faultOf(mismatchingClaim);
  }
  return firstMismatch === undefined || query.hasChoice ? mismatch('claim_set_unsatisfied') : firstMismatch;
}

function findMismatch(
  { path, values }: CompiledClaim,
  credential: PresentedCredential,
  isUndisclosed: IsUndisclosed,
): Mismatch | undefined {
  const selectedValues =
    credential.format === 'mso_mdoc' ? selectElement(credential.claims, path) : selectClaims(credential.claims, path, isUndisclosed);
  if (typeof selectedValues === 'string') return mismatch('missing_claim', JSON.stringify(path));
  // OpenID4VP 1.0 section 6.3: type and value must be equal, for any of the selected elements.
  if (values !== undefined && !selectedValues.some((value) => values.has(value))) return mismatch('value_mismatch', JSON.stringify(path));
  return undefined;
}
