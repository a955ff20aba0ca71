import type { DcqlQuery } from '../../dcql/query.ts';

/** The request of one document; the value of an element is `intentToRetain` (ISO/IEC 18013-5 section 8.3.2.1.2.1). */
export type IsoMdocQuery = {
  readonly id: string;
  readonly docType: string;
  readonly nameSpaces: { readonly [namespace: string]: { readonly [element: string]: boolean } };
};

type CredentialQuery = DcqlQuery['credentials'][number];
type Claim = NonNullable<CredentialQuery['claims']>[number];
export type IsoMdocFault = { readonly path: readonly (string | number)[]; readonly message: string };
type IsoMdocQueries = { readonly queries: readonly IsoMdocQuery[]; readonly faults: readonly IsoMdocFault[] };

/**
 * Converts a DCQL query to requests of ISO/IEC TS 18013-7 Annex C, which supports documents and elements but no alternatives. Therefore the
 * first option that mdocs satisfy is requested, and the first of `claim_sets`; the response is validated against the original query.
 * @returns faults when mdocs alone cannot satisfy it, or the query of a document is ambiguous.
 */
export function isoMdocQueries(query: DcqlQuery): IsoMdocQueries {
  const faults: IsoMdocFault[] = [];
  const queries: IsoMdocQuery[] = [];
  const selectedIds = selectQueryIds(query, faults);
  for (const [index, credential] of query.credentials.entries()) {
    if (!selectedIds.has(credential.id)) continue;
    const path = ['credentials', index];
    const isoMdocQuery = isoMdocQueryOf(credential);
    if (typeof isoMdocQuery === 'string') faults.push({ path, message: isoMdocQuery });
    else if (queries.some(({ docType }) => docType === isoMdocQuery.docType)) {
      const message = 'org-iso-mdoc answers by document type, and another query requests this one';
      faults.push({ path: [...path, 'meta', 'doctype_value'], message });
    } else queries.push(isoMdocQuery);
  }
  return { queries, faults };
}

function selectQueryIds(query: DcqlQuery, faults: IsoMdocFault[]): ReadonlySet<string> {
  const { credentials, credential_sets: sets } = query;
  if (sets === undefined) return new Set(credentials.map(({ id }) => id));
  const mdocs = new Set(credentials.filter(({ format }) => format === 'mso_mdoc').map(({ id }) => id));
  return new Set(
    sets.flatMap(({ options, required }, index) => {
      const option = options.find((ids) => ids.every((id) => mdocs.has(id)));
      if (option === undefined && required !== false) {
        const message = 'org-iso-mdoc only supports mdocs, and no option of this set contains only mdocs';
        faults.push({ path: ['credential_sets', index], message });
      }
      return option ?? [];
    }),
  );
}

/** @returns the reason why the query cannot be converted. */
function isoMdocQueryOf({ id, format, meta, claims, claim_sets: sets }: CredentialQuery): IsoMdocQuery | string {
  const docType = meta['doctype_value'];
  if (format !== 'mso_mdoc' || typeof docType !== 'string') {
    return 'org-iso-mdoc only supports mdocs; add an mso_mdoc to an option of credential_sets';
  }
  if (claims === undefined) return 'org-iso-mdoc requests elements by name; set claims';
  const firstSet = sets?.[0];
  const requestedClaims = firstSet === undefined ? claims : claims.filter((claim) => firstSet.includes(claim.id ?? ''));
  return { id, docType, nameSpaces: nameSpacesOf(requestedClaims) };
}

function nameSpacesOf(claims: readonly Claim[]): IsoMdocQuery['nameSpaces'] {
  const byNamespace = Map.groupBy(claims, ({ path }) => String(path[0]));
  return Object.fromEntries(
    [...byNamespace].map(([namespace, namespaceClaims]) => [
      namespace,
      Object.fromEntries(namespaceClaims.map((claim) => [String(claim.path[1]), claim.intent_to_retain ?? false])),
    ]),
  );
}
