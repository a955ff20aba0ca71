import type { Openid4vpClient } from '@openid4vc/openid4vp';
import { type DcqlCredential, DcqlQuery } from 'dcql';
import type { JWK } from 'jose';
import type { StoredCredential } from './cards.ts';
import { type Signer, signerOf } from './certificates.ts';
import { type Claim, claimsAt, type Json, type Path } from './claims.ts';

export type ResolvedRequest = Awaited<ReturnType<Openid4vpClient['resolveOpenId4vpAuthorizationRequest']>>;

/** Content of a request for the user's decision, with the matching credentials. */
export type ReadRequest = {
  readonly verifier: Verifier;
  readonly queries: readonly ReadQuery[];
  /** Alternatives of queries (OpenID4VP 1.0 section 6.2); without sets every query is required. */
  readonly sets: readonly { readonly options: readonly (readonly string[])[]; readonly isRequired: boolean; readonly purpose?: string }[];
  /** Decoded transaction data to which the user agrees with the response. */
  readonly transactionData: readonly Json[];
  /** True if the credentials of this wallet satisfy the request. */
  readonly canBeAnswered: boolean;
  readonly isEncrypted: boolean;
  /** The unchanged request. */
  readonly payload: Readonly<Record<string, unknown>>;
};

export type Verifier = {
  readonly clientId: string;
  readonly name?: string;
  readonly logoUri?: string;
  /** Absent for an unsigned request. */
  readonly signer?: Signer;
  readonly responseUri: string;
};

export type ReadQuery = {
  readonly id: string;
  readonly format: string;
  readonly types: readonly string[];
  readonly asked: readonly { readonly path: Path; readonly values?: readonly Json[] }[];
  readonly matches: readonly Match[];
};

/** A credential that matches a query, with the claims to disclose. */
export type Match = { readonly credential: StoredCredential; readonly claims: readonly Claim[] };

type CredentialQuery = {
  id: string;
  format: string;
  meta?: { vct_values?: string[]; doctype_value?: string };
  claims?: { path: Path; values?: Json[] }[];
};

/** @throws Error for a request without DCQL, or with a response mode that this wallet does not support. */
export function describeRequest(resolved: ResolvedRequest, cards: readonly StoredCredential[]): ReadRequest {
  const payload = resolved.authorizationRequestPayload as Record<string, unknown>;
  if (resolved.dcql === undefined) throw new Error('the request has no DCQL query');
  if (typeof payload['response_uri'] !== 'string') throw new Error('the request has no response_uri, so this wallet cannot answer it');
  const query = DcqlQuery.parse(resolved.dcql.query as DcqlQuery.Input);
  DcqlQuery.validate(query);
  const result = DcqlQuery.query(query, cards.map(dcqlCard));
  const queries = (query.credentials as unknown as CredentialQuery[]).map((credentialQuery): ReadQuery => {
    const matchResult = result.credential_matches[credentialQuery.id];
    const matches = matchResult?.success === true ? (matchResult.valid_credentials as unknown as DcqlMatch[]) : [];
    return {
      id: credentialQuery.id,
      format: credentialQuery.format,
      types:
        credentialQuery.meta?.vct_values ?? (credentialQuery.meta?.doctype_value === undefined ? [] : [credentialQuery.meta.doctype_value]),
      asked: credentialQuery.claims ?? [],
      matches: matches.flatMap((match) => matchOf(credentialQuery, match, cards)),
    };
  });
  return {
    verifier: verifierOf(resolved, payload),
    queries,
    sets: (query.credential_sets ?? []).map(({ options, required, purpose }) => ({
      options,
      isRequired: required,
      ...(typeof purpose === 'string' && { purpose }),
    })),
    transactionData: (resolved.transactionData ?? []).map(({ transactionData }) => transactionData as Json),
    canBeAnswered: result.can_be_satisfied,
    isEncrypted: payload['response_mode'] === 'direct_post.jwt',
    payload,
  };
}

type DcqlMatch = { success: boolean; input_credential_index: number; claims: { valid_claim_sets?: { valid_claim_indexes?: number[] }[] } };

function matchOf(query: CredentialQuery, match: DcqlMatch, cards: readonly StoredCredential[]): Match[] {
  const credential = cards[match.input_credential_index];
  if (credential === undefined || !match.success) return [];
  const indexes = match.claims.valid_claim_sets?.[0]?.valid_claim_indexes ?? [];
  const paths = indexes.flatMap((index) => {
    const path = query.claims?.[index]?.path;
    return path === undefined ? [] : [path];
  });
  return [{ credential, claims: claimsAt(credential.claims, paths) }];
}

function dcqlCard({ format, type, claims, authorities }: StoredCredential): DcqlCredential {
  const common = {
    cryptographic_holder_binding: true,
    ...(authorities.length > 0 && { authority: { type: 'aki' as const, values: authorities as [string] } }),
  };
  return format === 'mso_mdoc'
    ? { credential_format: format, doctype: type, namespaces: claims as never, ...common }
    : { credential_format: format, vct: type, claims, ...common };
}

function verifierOf({ client, jar }: ResolvedRequest, payload: Record<string, unknown>): Verifier {
  const metadata = (payload['client_metadata'] ?? {}) as { client_name?: unknown; logo_uri?: unknown };
  const leaf = jar?.signer.method === 'x5c' ? jar.signer.x5c[0] : undefined;
  return {
    clientId: client.effective,
    ...(typeof metadata.client_name === 'string' && { name: metadata.client_name }),
    ...(typeof metadata.logo_uri === 'string' && { logoUri: metadata.logo_uri }),
    ...(leaf !== undefined && { signer: signerOf(leaf) }),
    responseUri: String(payload['response_uri']),
  };
}

/** The encryption key of the response; undefined for a plain response. */
export function encryptionKeyOf({ payload, isEncrypted }: ReadRequest): JWK | undefined {
  const { jwks } = (payload['client_metadata'] ?? {}) as { jwks?: { keys?: JWK[] } };
  return isEncrypted ? jwks?.keys?.[0] : undefined;
}
