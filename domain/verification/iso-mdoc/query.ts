import type { DcqlQuery } from '../../dcql/query.ts';

/** One document to ask for: whether the verifier keeps an element, by namespace and name (ISO/IEC 18013-5 section 8.3.2.1.2.1). */
export type IsoMdocQuery = {
  /** Of the credential query. */
  readonly id: string;
  readonly docType: string;
  readonly nameSpaces: { readonly [namespace: string]: { readonly [element: string]: boolean } };
};

type CredentialQuery = DcqlQuery['credentials'][number];
type Claim = NonNullable<CredentialQuery['claims']>[number];
export type IsoMdocFault = { readonly path: readonly (string | number)[]; readonly message: string };
type Asked = { readonly queries: readonly IsoMdocQuery[]; readonly faults: readonly IsoMdocFault[] };

/**
 * What ISO/IEC TS 18013-7 Annex C asks for where DCQL asks for `query`: it knows documents and their elements, no alternatives. So the
 * first option that mdocs satisfy is asked for, and the first of `claim_sets`; the answer is held against the query as it is written.
 * @returns faults when mdocs alone cannot satisfy it, or it is not clear which query a document answers.
 */
export function isoMdocQueries(query: DcqlQuery): Asked {
  const faults: IsoMdocFault[] = [];
  const queries: IsoMdocQuery[] = [];
  const chosen = chosenIds(query, faults);
  for (const [index, credential] of query.credentials.entries()) {
    if (!chosen.has(credential.id)) continue;
    const path = ['credentials', index];
    const asked = askedOf(credential);
    if (typeof asked === 'string') faults.push({ path, message: asked });
    else if (queries.some(({ docType }) => docType === asked.docType)) {
      const message = 'org-iso-mdoc answers by document type, and another query asks for this one';
      faults.push({ path: [...path, 'meta', 'doctype_value'], message });
    } else queries.push(asked);
  }
  return { queries, faults };
}

function chosenIds(query: DcqlQuery, faults: IsoMdocFault[]): ReadonlySet<string> {
  const { credentials, credential_sets: sets } = query;
  if (sets === undefined) return new Set(credentials.map(({ id }) => id));
  const mdocs = new Set(credentials.filter(({ format }) => format === 'mso_mdoc').map(({ id }) => id));
  return new Set(
    sets.flatMap(({ options, required }, index) => {
      const option = options.find((ids) => ids.every((id) => mdocs.has(id)));
      if (option === undefined && required !== false) {
        const message = 'org-iso-mdoc presents mdocs alone, and no option of this set has nothing else';
        faults.push({ path: ['credential_sets', index], message });
      }
      return option ?? [];
    }),
  );
}

/** @returns why it cannot be asked for. */
function askedOf({ id, format, meta, claims, claim_sets: sets }: CredentialQuery): IsoMdocQuery | string {
  const docType = meta['doctype_value'];
  if (format !== 'mso_mdoc' || typeof docType !== 'string') {
    return 'org-iso-mdoc presents mdocs alone; offer an mso_mdoc in an option of credential_sets';
  }
  if (claims === undefined) return 'org-iso-mdoc asks for elements by name; give claims';
  const first = sets?.[0];
  const wanted = first === undefined ? claims : claims.filter((claim) => first.includes(claim.id ?? ''));
  return { id, docType, nameSpaces: nameSpacesOf(wanted) };
}

function nameSpacesOf(claims: readonly Claim[]): IsoMdocQuery['nameSpaces'] {
  const byNamespace = Map.groupBy(claims, ({ path }) => String(path[0]));
  return Object.fromEntries(
    [...byNamespace].map(([namespace, own]) => [
      namespace,
      Object.fromEntries(own.map((claim) => [String(claim.path[1]), claim.intent_to_retain ?? false])),
    ]),
  );
}
