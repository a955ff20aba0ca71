import type { RefusalReason } from '../shared/refusal.ts';
import type { CompiledAuthority, CompiledClaim, CompiledCredentialQuery } from './compile.ts';
import { type ClaimsPath, type IsUndisclosed, selectClaims, selectElement } from './path.ts';

/** What is known about the issuer of a credential once its chain is verified. */
export type AuthorityEvidence = {
  /** The keyIdentifier of the AuthorityKeyIdentifier of each certificate in the chain, base64url. */
  readonly authorityKeyIds: readonly string[];
  /** Addresses of the trusted lists that a certificate of the chain was found in. */
  readonly trustListUris: readonly string[];
  /** Entity identifiers on a verified federation trust path. */
  readonly federationEntityIds: readonly string[];
};

/** A presentation after all cryptographic checks. */
export type PresentedCredential = {
  readonly format: string;
  /** Its `vct` and the types it verifiably stands for as well, or its `docType` alone. */
  readonly types: readonly string[];
  readonly holderBound: boolean;
  /** SD-JWT: the processed payload, with tombstones in its arrays. mdoc: namespaces of JSON values. */
  readonly claims: Readonly<Record<string, unknown>>;
  /** SD-JWT: the signed payload before disclosures are applied. mdoc: empty. */
  readonly alwaysVisible: Readonly<Record<string, unknown>>;
  readonly authority: AuthorityEvidence;
};

/** `paths`: the claims that were asked for and found, `undefined` when the query asked for none. */
export type Match = { readonly matched: true; readonly paths: readonly ClaimsPath[] | undefined };
/** `detail` names the claim by its path, for the operator's report. */
export type Mismatch = { readonly matched: false; readonly reason: RefusalReason; readonly detail?: string };

const EVIDENCE_OF_TYPE: ReadonlyMap<string, keyof AuthorityEvidence> = new Map([
  ['aki', 'authorityKeyIds'],
  ['etsi_tl', 'trustListUris'],
  ['openid_federation', 'federationEntityIds'],
]);

/** Holds one verified credential against one credential query (OpenID4VP 1.0 sections 6.1 to 6.4, 8.6). */
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

/** A type that we do not know is a condition that we cannot see met. */
function isMet({ type, values }: CompiledAuthority, evidence: AuthorityEvidence): boolean {
  const kind = EVIDENCE_OF_TYPE.get(type);
  return kind !== undefined && evidence[kind].some((value) => values.has(value));
}

function matchClaims(query: CompiledCredentialQuery, credential: PresentedCredential, isUndisclosed: IsUndisclosed): Match | Mismatch {
  if (query.claimSets === undefined) return { matched: true, paths: undefined };
  // Sets share their claims; each is looked for once, however many sets name it.
  const faults = new Map<CompiledClaim, Mismatch | undefined>();
  const faultOf = (claim: CompiledClaim): Mismatch | undefined => {
    if (!faults.has(claim)) faults.set(claim, findMismatch(claim, credential, isUndisclosed));
    return faults.get(claim);
  };
  let first: Mismatch | undefined;
  // OpenID4VP 1.0 section 6.4.1: one complete set suffices; order is our preference only.
  for (const claims of query.claimSets) {
    const faulty = claims.find((claim) => faultOf(claim) !== undefined);
    if (faulty === undefined) return { matched: true, paths: claims.map(({ path }) => path) };
    first ??= faultOf(faulty);
  }
  return first === undefined || query.hasChoice ? mismatch('claim_set_unsatisfied') : first;
}

function findMismatch(
  { path, values }: CompiledClaim,
  credential: PresentedCredential,
  isUndisclosed: IsUndisclosed,
): Mismatch | undefined {
  const selected =
    credential.format === 'mso_mdoc' ? selectElement(credential.claims, path) : selectClaims(credential.claims, path, isUndisclosed);
  if (typeof selected === 'string') return mismatch('missing_claim', JSON.stringify(path));
  // OpenID4VP 1.0 section 6.3: type and value are equal; any of several selected elements may be it.
  if (values !== undefined && !selected.some((value) => values.has(value))) return mismatch('value_mismatch', JSON.stringify(path));
  return undefined;
}
