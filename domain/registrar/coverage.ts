import type { Json, JsonObject } from '../shared/json.ts';
import type { DcqlQuery } from '../verification/dcql/query.ts';

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
export function covers(
  { credentials = [] }: { readonly credentials?: readonly RegisteredCredential[] },
  query: DcqlQuery,
): Coverage {
  for (const asked of query.credentials) {
    const gap = gapOf(asked, credentials);
    if (gap !== undefined) return { covered: false, gap: `credential query "${asked.id}": ${gap}` };
  }
  return { covered: true };
}

function gapOf(asked: Query, credentials: readonly RegisteredCredential[]): string | undefined {
  const meta = asSet(asked.meta as JsonObject);
  const registered = credentials.filter(
    (credential) =>
      credential.format === asked.format &&
      credential.claims?.length !== 0 &&
      asSet(credential.meta) === meta,
  );
  if (registered.length === 0) return `no ${asked.format} with this meta is registered`;
  const claims = registered.flatMap((credential) => credential.claims ?? []);
  const missing = asked.claims?.find((claim) => !claims.some((known) => isWithin(claim, known)));
  return missing && `the claim ${JSON.stringify(missing.path)} is not registered`;
}

/** A claim that is registered for certain values may be asked for with some of these only. */
function isWithin(
  { path, values }: QueriedClaim,
  known: NonNullable<RegisteredCredential['claims']>[number],
): boolean {
  if (JSON.stringify(path) !== JSON.stringify(known.path)) return false;
  return known.values === undefined || values?.every((value) => known.values?.includes(value)) === true;
}

/** Equal texts for values that differ in the order of their members and entries only. */
function asSet(value: Json): string {
  if (Array.isArray(value)) return `[${[...new Set(value.map(asSet))].sort().join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value as JsonObject).map(
    ([name, member]) => `${JSON.stringify(name)}:${asSet(member)}`,
  );
  return `{${members.sort().join()}}`;
}
