import type { Openid4vpClient } from '@openid4vc/openid4vp';
import { type DcqlCredential, DcqlQuery } from 'dcql';
import type { JWK } from 'jose';
import type { StoredCredential } from './cards.ts';
import { type Signer, signerOf } from './certificates.ts';
import { type Claim, claimsAt, type Json, type Path } from './claims.ts';

export type Resolved = Awaited<ReturnType<Openid4vpClient['resolveOpenId4vpAuthorizationRequest']>>;

/** What a request says, for a person who is to decide, and which cards answer it. */
export type ReadRequest = {
  readonly verifier: Verifier;
  readonly queries: readonly ReadQuery[];
  /** Which queries may be answered instead of others (OpenID4VP 1.0 section 6.2); none: each has to be. */
  readonly sets: readonly {
    readonly options: readonly (readonly string[])[];
    readonly isRequired: boolean;
    readonly purpose?: string;
  }[];
  /** What the user agrees to with the answer, decoded. */
  readonly transactionData: readonly Json[];
  /** Whether the cards of this wallet are enough. */
  readonly canBeAnswered: boolean;
  readonly isEncrypted: boolean;
  /** The request as it came. */
  readonly payload: Readonly<Record<string, unknown>>;
};

export type Verifier = {
  readonly clientId: string;
  readonly name?: string;
  readonly logoUri?: string;
  /** Absent for a request that nobody signed. */
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

/** A card that answers a query, and what it would tell. */
export type Match = { readonly credential: StoredCredential; readonly claims: readonly Claim[] };

type Queried = {
  id: string;
  format: string;
  meta?: { vct_values?: string[]; doctype_value?: string };
  claims?: { path: Path; values?: Json[] }[];
};

/** @throws Error when it asks in another way than by DCQL, or for an answer that this wallet cannot give. */
export function describeRequest(resolved: Resolved, cards: readonly StoredCredential[]): ReadRequest {
  const payload = resolved.authorizationRequestPayload as Record<string, unknown>;
  if (resolved.dcql === undefined) throw new Error('the request has no DCQL query');
  if (typeof payload['response_uri'] !== 'string')
    throw new Error('the request names no response_uri, so it is not one that this wallet can answer');
  const query = DcqlQuery.parse(resolved.dcql.query as DcqlQuery.Input);
  DcqlQuery.validate(query);
  const result = DcqlQuery.query(query, cards.map(dcqlCard));
  const queries = (query.credentials as unknown as Queried[]).map((asked): ReadQuery => {
    const found = result.credential_matches[asked.id];
    const matches = found?.success === true ? (found.valid_credentials as unknown as Found[]) : [];
    return {
      id: asked.id,
      format: asked.format,
      types: asked.meta?.vct_values ?? (asked.meta?.doctype_value === undefined ? [] : [asked.meta.doctype_value]),
      asked: asked.claims ?? [],
      matches: matches.flatMap((match) => matchOf(asked, match, cards)),
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

type Found = {
  success: boolean;
  input_credential_index: number;
  claims: { valid_claim_sets?: { valid_claim_indexes?: number[] }[] };
};

function matchOf(asked: Queried, match: Found, cards: readonly StoredCredential[]): Match[] {
  const credential = cards[match.input_credential_index];
  if (credential === undefined || !match.success) return [];
  const indexes = match.claims.valid_claim_sets?.[0]?.valid_claim_indexes ?? [];
  const paths = indexes.flatMap((index) => {
    const path = asked.claims?.[index]?.path;
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

function verifierOf({ client, jar }: Resolved, payload: Record<string, unknown>): Verifier {
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

/** The key that an answer is encrypted to; undefined when it is not. */
export function encryptionKeyOf({ payload, isEncrypted }: ReadRequest): JWK | undefined {
  const { jwks } = (payload['client_metadata'] ?? {}) as { jwks?: { keys?: JWK[] } };
  return isEncrypted ? jwks?.keys?.[0] : undefined;
}
