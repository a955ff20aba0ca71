import type { DcqlQuery } from '../dcql/query.ts';
import type { Json, JsonObject } from '../shared/json.ts';

/** Credentials that a relying party may request by its registration certificate (ETSI TS 119 475 section 5.2.4). */
export type RegisteredCredential = {
  readonly format: string;
  readonly meta: JsonObject;
  /**
   * Absent: the credential without selectively disclosable claims, like an absent list in a query (OpenID4VP 1.0 section 6.4.1). Empty:
   * nothing at all.
   */
  readonly claims?: readonly { readonly path: readonly Json[]; readonly values?: readonly Json[] }[];
};

export type Coverage = { readonly covered: true } | { readonly covered: false; readonly gap: string };

type Query = DcqlQuery['credentials'][number];
type QueriedClaim = NonNullable<Query['claims']>[number];

/** Checks that everything in `query` is registered: formats, types and claims are compared as sets. */
export function findQueryCoverage(
  { credentials = [] }: { readonly credentials?: readonly RegisteredCredential[] },
  query: DcqlQuery,
): Coverage {
  for (const credentialQuery of query.credentials) {
    const gap = findCoverageGap(credentialQuery, credentials);
    if (gap !== undefined) return { covered: false, gap: `credential query "${credentialQuery.id}": ${gap}` };
  }
  return { covered: true };
}

function findCoverageGap(query: Query, credentials: readonly RegisteredCredential[]): string | undefined {
  const meta = canonicalSet(query.meta as JsonObject);
  const registeredCredentials = credentials.filter(
    (credential) => credential.format === query.format && credential.claims?.length !== 0 && canonicalSet(credential.meta) === meta,
  );
  if (registeredCredentials.length === 0) return `the format ${query.format} with this meta is not registered`;
  const claims = registeredCredentials.flatMap((credential) => credential.claims ?? []);
  const missingClaim = query.claims?.find((claim) => !claims.some((registeredClaim) => isWithin(claim, registeredClaim)));
  return missingClaim && `the claim ${JSON.stringify(missingClaim.path)} is not registered`;
}

/** A claim that is registered for certain values may be requested with some of these only. */
function isWithin({ path, values }: QueriedClaim, registeredClaim: NonNullable<RegisteredCredential['claims']>[number]): boolean {
  if (JSON.stringify(path) !== JSON.stringify(registeredClaim.path)) return false;
  return registeredClaim.values === undefined || values?.every((value) => registeredClaim.values?.includes(value)) === true;
}

export type IssuedType = { readonly format: string; readonly type: string };

/** The type in a query or a registration (OpenID4VP 1.0 appendices B.2.3 and B.3.5). */
export function metaOf({ format, type }: IssuedType): JsonObject {
  return format === 'mso_mdoc' ? { doctype_value: type } : { vct_values: [type] };
}

/** Checks that all issued types are registered for the provider (ARF 3.0 ISSU_24b and ISSU_34b). */
export function findIssuingCoverage(
  { provides = [] }: { readonly provides?: readonly RegisteredCredential[] },
  issued: readonly IssuedType[],
): Coverage {
  const missingClaim = issued.find((issuedType) => !provides.some((registered) => isRegisteredType(registered, issuedType)));
  if (missingClaim === undefined) return { covered: true };
  return { covered: false, gap: `${missingClaim.format} of the type "${missingClaim.type}" is not registered` };
}

function isRegisteredType({ format, meta }: RegisteredCredential, issued: IssuedType): boolean {
  if (format !== issued.format) return false;
  if (format === 'mso_mdoc') return meta['doctype_value'] === issued.type;
  const types = meta['vct_values'];
  return Array.isArray(types) && (types as readonly Json[]).includes(issued.type);
}

/** Serializes a value so that the order of properties and entries is irrelevant. */
function canonicalSet(value: Json): string {
  if (Array.isArray(value)) return `[${[...new Set(value.map(canonicalSet))].sort().join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value as JsonObject).map(([name, member]) => `${JSON.stringify(name)}:${canonicalSet(member)}`);
  return `{${members.sort().join()}}`;
}
