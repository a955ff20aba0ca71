import { decodeBase64url } from '../shared/base64url.ts';
import { unknownPropertyMessage } from '../shared/closest-name.ts';
import { fieldErrors, PARSE_OPTIONS } from '../shared/field-errors.ts';
import { isSafeId } from '../shared/json.ts';
import { META_OF_FORMAT, SUPPORTED_FORMATS } from './formats.ts';

/** The properties that the rules check; `query.ts` defines the others. */
type CredentialQuery = {
  readonly id: string;
  readonly format: string;
  readonly meta: Readonly<Record<string, unknown>>;
  readonly claims?:
    | readonly { readonly id?: string | undefined; readonly path: readonly unknown[]; readonly intent_to_retain?: boolean | undefined }[]
    | undefined;
  readonly claim_sets?: readonly (readonly string[])[] | undefined;
  readonly trusted_authorities?: readonly { readonly type: string; readonly values: readonly string[] }[] | undefined;
};
type Query = {
  readonly credentials: readonly { readonly id: string }[];
  readonly credential_sets?: readonly { readonly options: readonly (readonly string[])[] }[] | undefined;
};

/** `rule` identifies the violated rule, because several properties may be involved. */
type Problem = { readonly path: PropertyKey[]; readonly rule: string; readonly message: string };
type Issues = { addIssue(issue: { code: 'custom'; path: PropertyKey[]; message: string; params: object }): void };

export function addProblems(problems: Iterable<Problem>, issues: Issues): void {
  for (const { path, rule, message } of problems) issues.addIssue({ code: 'custom', path, message, params: { rule } });
}

function* findMetaProblems(credential: CredentialQuery): Iterable<Problem> {
  const parsed = META_OF_FORMAT.get(credential.format)?.safeParse(credential.meta, PARSE_OPTIONS);
  for (const { path, message } of fieldErrors(parsed?.error?.issues ?? [], credential.meta)) {
    const parts = path.split('.');
    yield { path: ['meta', ...parts], rule: parts[0] ?? '', message };
  }
}

function* findClaimProblems(credential: CredentialQuery): Iterable<Problem> {
  const ids = new Set<string | undefined>();
  const paths = new Set<string>();
  for (const [i, claim] of (credential.claims ?? []).entries()) {
    // OpenID4VP 1.0 section 6.3: an id appears once within one credential query.
    if (claim.id !== undefined && ids.has(claim.id)) {
      yield { path: ['claims', i, 'id'], rule: 'duplicate_claim_id', message: 'Another claim has this id.' };
    }
    ids.add(claim.id);
    // OpenID4VP 1.0 section 6.3: no two claims have the same path.
    const path = JSON.stringify(claim.path);
    if (paths.has(path)) yield { path: ['claims', i, 'path'], rule: 'duplicate_path', message: 'Another claim has this path.' };
    paths.add(path);
    // OpenID4VP 1.0 appendix B.2.4: namespace and element identifier.
    if (credential.format === 'mso_mdoc' && !isElementPath(claim.path)) {
      yield { path: ['claims', i, 'path'], rule: 'path', message: 'An mdoc path is a namespace and an element name.' };
    }
  }
  yield* findClaimSetProblems(credential, ids);
}

function isElementPath(path: readonly unknown[]): boolean {
  return path.length === 2 && path.every((component) => typeof component === 'string');
}

function* findClaimSetProblems(credential: CredentialQuery, ids: ReadonlySet<unknown>): Iterable<Problem> {
  if (credential.claim_sets === undefined) return;
  // OpenID4VP 1.0 section 6.1: claim_sets refer to claims.
  if (credential.claims === undefined) {
    yield { path: ['claim_sets'], rule: 'claim_sets_without_claims', message: 'The query has no claims to choose from.' };
    return;
  }
  for (const [i, claim] of credential.claims.entries()) {
    // OpenID4VP 1.0 section 6.3: with claim_sets every claim has an id.
    if (claim.id === undefined)
      yield { path: ['claims', i, 'id'], rule: 'claim_id_required', message: 'With claim_sets every claim needs an id.' };
  }
  const sets = new Set<string>();
  for (const [i, set] of credential.claim_sets.entries()) {
    const members = [...new Set(set)].sort().join(' ');
    // The second of two equal sets can never be selected.
    if (sets.has(members)) yield { path: ['claim_sets', i], rule: 'duplicate_claim_set', message: 'Another set contains the same claims.' };
    sets.add(members);
    for (const [j, id] of set.entries()) {
      if (ids.has(id)) continue;
      yield { path: ['claim_sets', i, j], rule: 'claim_sets_unknown_id', message: 'No claim has this id.' };
    }
  }
}

export function* findCredentialProblems(credential: CredentialQuery): Iterable<Problem> {
  yield* findMetaProblems(credential);
  yield* findClaimProblems(credential);
}

export function* findIdProblems(query: Query): Iterable<Problem> {
  const ids = new Set<string>();
  for (const [i, { id }] of query.credentials.entries()) {
    // OpenID4VP 1.0 section 6.1: an id appears once within the query.
    if (ids.has(id)) yield { path: ['credentials', i, 'id'], rule: 'duplicate_id', message: 'Another query has this id.' };
    ids.add(id);
  }
  for (const [i, set] of (query.credential_sets ?? []).entries()) {
    for (const [j, option] of set.options.entries()) {
      for (const [k, id] of option.entries()) {
        if (ids.has(id)) continue;
        const path = ['credential_sets', i, 'options', j, k];
        yield { path, rule: 'options_unknown_id', message: 'No credential query has this id.' };
      }
    }
  }
}

/** Supported issuer conditions (OpenID4VP 1.0 section 6.1.1). Other types could never be satisfied. */
const AUTHORITY_TYPES = ['aki', 'etsi_tl'] as const;

/** Ids are property names in the response, and plain objects of wallets have a `constructor`. */
function* findNameProblems(id: string, path: PropertyKey[]): Iterable<Problem> {
  if (!isSafeId(id)) yield { path, rule: 'id', message: 'Use another id; `__proto__`, `constructor` and `prototype` are not allowed.' };
}

/** An unknown property would have no effect, although its author expects one. */
export function* findUnknownMetaProblems(credential: CredentialQuery): Iterable<Problem> {
  const shape = META_OF_FORMAT.get(credential.format)?.shape;
  if (shape === undefined) return;
  const knownNames = Object.keys(shape);
  for (const name of Object.keys(credential.meta)) {
    if (knownNames.includes(name)) continue;
    yield { path: ['meta', name], rule: 'unknown_member', message: unknownPropertyMessage(name, knownNames) };
  }
}

export function* findUnsupportedProblems(credential: CredentialQuery, place: PropertyKey[]): Iterable<Problem> {
  const { id, format, trusted_authorities = [] } = credential;
  yield* findNameProblems(id, [...place, 'id']);
  yield* findUnsupportedClaimProblems(credential, place);
  for (const [j, { type, values }] of trusted_authorities.entries()) {
    const path = [...place, 'trusted_authorities', j];
    if (type === 'aki') yield* findKeyIdentifierProblems(values, [...path, 'values']);
    if (AUTHORITY_TYPES.some((supported) => supported === type)) continue;
    yield { path: [...path, 'type'], rule: 'authority_type', message: `Supported types: ${AUTHORITY_TYPES.join(', ')}.` };
  }
  if (SUPPORTED_FORMATS.some((supported) => supported === format)) return;
  const message = `Supported formats: ${SUPPORTED_FORMATS.join(', ')}.`;
  yield { path: [...place, 'format'], rule: 'format', message };
}

/** Queries that the grammar permits, but that wallets fail on or reject. */
function* findUnsupportedClaimProblems({ format, claims = [], claim_sets = [] }: CredentialQuery, place: PropertyKey[]): Iterable<Problem> {
  for (const [j, { id = '', path, intent_to_retain }] of claims.entries()) {
    const claim = [...place, 'claims', j];
    yield* findNameProblems(id, [...claim, 'id']);
    // OpenID4VP 1.0 appendix B.2.4: a property for mdocs
    if (intent_to_retain !== undefined && format !== 'mso_mdoc') {
      yield { path: [...claim, 'intent_to_retain'], rule: 'intent_to_retain', message: 'It is only allowed for mso_mdoc.' };
    }
    // OpenID4VP 1.0 section 7: a credential is an object, so null and positions select nothing of it.
    if (path.length > 0 && typeof path[0] !== 'string') {
      yield { path: [...claim, 'path', 0], rule: 'path', message: 'A path begins with the name of a property.' };
    }
  }
  for (const [i, set] of claim_sets.entries()) {
    yield* findRepeatedIdProblems(set, [...place, 'claim_sets', i]);
  }
}

/** OpenID4VP 1.0 sections 6.1 and 6.2: a set or an option names each id once. */
export function* findRepeatedIdProblems(ids: readonly string[], place: PropertyKey[]): Iterable<Problem> {
  for (const [i, id] of ids.entries()) {
    if (ids.indexOf(id) < i) yield { path: [...place, i], rule: 'repeated_id', message: 'The id is used twice.' };
  }
}

/** OpenID4VP 1.0 section 6.1.1.1 */
function* findKeyIdentifierProblems(values: readonly string[], place: PropertyKey[]): Iterable<Problem> {
  for (const [i, value] of values.entries()) {
    if (decodeBase64url(value) !== undefined) continue;
    yield { path: [...place, i], rule: 'aki', message: 'A key identifier is base64url without padding.' };
  }
}
