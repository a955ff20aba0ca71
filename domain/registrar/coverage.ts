import type { DcqlQuery } from '../dcql/query.ts';
import type { Json, JsonObject } from '../shared/json.ts';

/** What a registration certificate lets a relying party ask for (ETSI TS 119 475 section 5.2.4). */
export type RegisteredCredential = {
  readonly format: string;
  readonly meta: JsonObject;
  /**
   * Absent: the credential as such, without any claim that its holder may withhold, which is what an absent list
   * means in a query, too (OpenID4VP 1.0 section 6.4.1). Empty: nothing at all.
   */
  readonly claims?: readonly { readonly path: readonly Json[]; readonly values?: readonly Json[] }[];
};

export type Coverage = { readonly covered: true } | { readonly covered: false; readonly gap: string };

type Query = DcqlQuery['credentials'][number];
type QueriedClaim = NonNullable<Query['claims']>[number];

/** Whether everything that `query` asks for is registered: formats, types and claims are compared as sets. */
export function covers({ credentials = [] }: { readonly credentials?: readonly RegisteredCredential[] }, query: DcqlQuery): Coverage {
  for (const asked of query.credentials) {
    const gap = gapOf(asked, credentials);
    if (gap !== undefined) return { covered: false, gap: `credential query "${asked.id}": ${gap}` };
  }
  return { covered: true };
}

function gapOf(asked: Query, credentials: readonly RegisteredCredential[]): string | undefined {
  const meta = asSet(asked.meta as JsonObject);
  const registered = credentials.filter(
    (credential) => credential.format === asked.format && credential.claims?.length !== 0 && asSet(credential.meta) === meta,
  );
  if (registered.length === 0) return `no ${asked.format} with this meta is registered`;
  const claims = registered.flatMap((credential) => credential.claims ?? []);
  const missing = asked.claims?.find((claim) => !claims.some((known) => isWithin(claim, known)));
  return missing && `the claim ${JSON.stringify(missing.path)} is not registered`;
}

/** A claim that is registered for certain values may be asked for with some of these only. */
function isWithin({ path, values }: QueriedClaim, known: NonNullable<RegisteredCredential['claims']>[number]): boolean {
  if (JSON.stringify(path) !== JSON.stringify(known.path)) return false;
  return known.values === undefined || values?.every((value) => known.values?.includes(value)) === true;
}

/** What a tenant issues, by the one name of its type. */
export type IssuedType = { readonly format: string; readonly type: string };

/** Where a query and a registration name a type (OpenID4VP 1.0 appendices B.2.3 and B.3.5). */
export function metaOf({ format, type }: IssuedType): JsonObject {
  return format === 'mso_mdoc' ? { doctype_value: type } : { vct_values: [type] };
}

/** Whether all that is issued is registered as what the provider issues (ARF 3.0 ISSU_24b and ISSU_34b). */
export function coversIssuing(
  { provides = [] }: { readonly provides?: readonly RegisteredCredential[] },
  issued: readonly IssuedType[],
): Coverage {
  const missing = issued.find((one) => !provides.some((registered) => names(registered, one)));
  if (missing === undefined) return { covered: true };
  return { covered: false, gap: `${missing.format} of the type "${missing.type}" is not registered` };
}

function names({ format, meta }: RegisteredCredential, issued: IssuedType): boolean {
  if (format !== issued.format) return false;
  if (format === 'mso_mdoc') return meta['doctype_value'] === issued.type;
  const types = meta['vct_values'];
  return Array.isArray(types) && (types as readonly Json[]).includes(issued.type);
}

/** Equal texts for values that differ in the order of their members and entries only. */
function asSet(value: Json): string {
  if (Array.isArray(value)) return `[${[...new Set(value.map(asSet))].sort().join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value as JsonObject).map(([name, member]) => `${JSON.stringify(name)}:${asSet(member)}`);
  return `{${members.sort().join()}}`;
}
