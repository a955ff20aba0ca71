import { MdocMeta, SdJwtMeta } from './formats.ts';
import type { ClaimsPath } from './path.ts';
import type { DcqlQuery } from './query.ts';

/** A claim of a query. Without `values` only its presence is required. */
export type CompiledClaim = { readonly path: ClaimsPath; readonly values: ReadonlySet<unknown> | undefined };

export type CompiledAuthority = { readonly type: string; readonly values: ReadonlySet<string> };

export type CompiledCredentialQuery = {
  readonly id: string;
  readonly format: string;
  /** The accepted `vct` or `docType` values. Empty, so never satisfied, for an unsupported format. */
  readonly types: ReadonlySet<string>;
  readonly multiple: boolean;
  readonly holderBindingRequired: boolean;
  /** Alternatives; `undefined` accepts any trusted issuer. */
  readonly authorities: readonly CompiledAuthority[] | undefined;
  /** Alternatives in our order of preference; `undefined` for a query without claims. */
  readonly claimSets: readonly (readonly CompiledClaim[])[] | undefined;
  /** True if the alternatives come from `claim_sets`; otherwise there is one, of all claims. */
  readonly hasChoice: boolean;
};

export type CompiledCredentialSet = { readonly options: readonly (readonly string[])[]; readonly required: boolean };

/** A query prepared for matching responses. */
export type CompiledQuery = {
  readonly credentials: ReadonlyMap<string, CompiledCredentialQuery>;
  /** `undefined` when every credential query must be answered. */
  readonly sets: readonly CompiledCredentialSet[] | undefined;
  /** The query ids whose presentations are used; other presentations are dropped. */
  readonly requested: ReadonlySet<string>;
};

type CredentialQuery = DcqlQuery['credentials'][number];

export function compileQuery(query: DcqlQuery): CompiledQuery {
  const credentials = new Map(query.credentials.map((credential) => [credential.id, compile(credential)]));
  const sets = query.credential_sets?.map(({ options, required }) => ({ options, required: required ?? true }));
  // OpenID4VP 1.0 section 6.4.2: with credential_sets, a query in none of them is not requested.
  const requestedIds = new Set(sets === undefined ? credentials.keys() : sets.flatMap((s) => s.options.flat()));
  return { credentials, sets, requested: requestedIds };
}

function compile(credential: CredentialQuery): CompiledCredentialQuery {
  return {
    id: credential.id,
    format: credential.format,
    types: new Set(typesOf(credential)),
    multiple: credential.multiple ?? false,
    holderBindingRequired: credential.require_cryptographic_holder_binding ?? true,
    authorities: credential.trusted_authorities?.map(({ type, values }) => ({ type, values: new Set(values) })),
    claimSets: claimSetsOf(credential),
    hasChoice: credential.claim_sets !== undefined,
  };
}

function typesOf({ format, meta }: CredentialQuery): readonly string[] {
  if (format === 'dc+sd-jwt') return SdJwtMeta.parse(meta).vct_values;
  if (format === 'mso_mdoc') return [MdocMeta.parse(meta).doctype_value];
  return [];
}

function claimSetsOf({ claims, claim_sets }: CredentialQuery): CompiledCredentialQuery['claimSets'] {
  if (claims === undefined) return undefined;
  const compiled = claims.map(({ id, path, values }) => ({
    id,
    path,
    values: values === undefined ? undefined : new Set<unknown>(values),
  }));
  if (claim_sets === undefined) return [compiled];
  const byId = new Map(compiled.map((claim) => [claim.id, claim]));
  return claim_sets.map((ids) => ids.flatMap((id) => byId.get(id) ?? []));
}
