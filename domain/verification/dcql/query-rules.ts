import { decodeBase64url } from '../../shared/base64url.ts';
import { unknownMember } from '../../shared/closest-name.ts';
import { fieldErrors, PARSING } from '../../shared/field-errors.ts';
import { isSafeId } from '../../shared/json.ts';
import { META_OF_FORMAT, SUPPORTED_FORMATS } from './formats.ts';

/** What the rules look at; `query.ts` says what else there may be. */
type CredentialQuery = {
  readonly id: string;
  readonly format: string;
  readonly meta: Readonly<Record<string, unknown>>;
  readonly claims?:
    | readonly {
        readonly id?: string | undefined;
        readonly path: readonly unknown[];
        readonly intent_to_retain?: boolean | undefined;
      }[]
    | undefined;
  readonly claim_sets?: readonly (readonly string[])[] | undefined;
  readonly trusted_authorities?:
    | readonly { readonly type: string; readonly values: readonly string[] }[]
    | undefined;
};
type Query = {
  readonly credentials: readonly { readonly id: string }[];
  readonly credential_sets?: readonly { readonly options: readonly (readonly string[])[] }[] | undefined;
};

type Issues = {
  addIssue(issue: { code: 'custom'; path: PropertyKey[]; message: string; params: object }): void;
};

function report(issues: Issues, path: PropertyKey[], rule: string, message: string): void {
  issues.addIssue({ code: 'custom', path, message, params: { rule } });
}

function checkMeta(credential: CredentialQuery, issues: Issues): void {
  const read = META_OF_FORMAT.get(credential.format)?.safeParse(credential.meta, PARSING);
  for (const { path, message } of fieldErrors(read?.error?.issues ?? [], credential.meta)) {
    const parts = path.split('.');
    report(issues, ['meta', ...parts], parts[0] ?? '', message);
  }
}

function checkClaims(credential: CredentialQuery, issues: Issues): void {
  const ids = new Set<string | undefined>();
  const paths = new Set<string>();
  credential.claims?.forEach((claim, i) => {
    // OpenID4VP 1.0 section 6.3: an id appears once within one credential query.
    if (claim.id !== undefined && ids.has(claim.id)) {
      report(issues, ['claims', i, 'id'], 'duplicate_claim_id', 'Another claim has this id.');
    }
    ids.add(claim.id);
    // OpenID4VP 1.0 section 6.3: the same claim is not pointed at twice.
    const path = JSON.stringify(claim.path);
    if (paths.has(path)) {
      report(issues, ['claims', i, 'path'], 'duplicate_path', 'Another claim has this path.');
    }
    paths.add(path);
    // OpenID4VP 1.0 appendix B.2.4: namespace and element identifier.
    if (credential.format === 'mso_mdoc' && !isElementPath(claim.path)) {
      report(issues, ['claims', i, 'path'], 'path', 'An mdoc path is a namespace and an element name.');
    }
  });
  checkClaimSets(credential, ids, issues);
}

function isElementPath(path: readonly unknown[]): boolean {
  return path.length === 2 && path.every((component) => typeof component === 'string');
}

function checkClaimSets(credential: CredentialQuery, ids: ReadonlySet<unknown>, issues: Issues): void {
  if (credential.claim_sets === undefined) return;
  // OpenID4VP 1.0 section 6.1: claim_sets choose among claims.
  if (credential.claims === undefined) {
    report(issues, ['claim_sets'], 'claim_sets_without_claims', 'There are no claims to choose from.');
    return;
  }
  credential.claims.forEach((claim, i) => {
    // OpenID4VP 1.0 section 6.3: with claim_sets every claim has an id.
    if (claim.id === undefined) {
      report(issues, ['claims', i, 'id'], 'claim_id_required', 'With claim_sets every claim needs an id.');
    }
  });
  const sets = new Set<string>();
  credential.claim_sets.forEach((set, i) => {
    const members = [...new Set(set)].sort().join(' ');
    // The second of two equal sets can never be the one that is met.
    if (sets.has(members)) {
      report(issues, ['claim_sets', i], 'duplicate_claim_set', 'Another set has these claims.');
    }
    sets.add(members);
    set.forEach((id, j) => {
      if (ids.has(id)) return;
      report(issues, ['claim_sets', i, j], 'claim_sets_unknown_id', 'No claim has this id.');
    });
  });
}

export function checkCredential(credential: CredentialQuery, issues: Issues): void {
  checkMeta(credential, issues);
  checkClaims(credential, issues);
}

export function checkIds(query: Query, issues: Issues): void {
  const ids = new Set<string>();
  query.credentials.forEach(({ id }, i) => {
    // OpenID4VP 1.0 section 6.1: an id appears once within the query.
    if (ids.has(id)) report(issues, ['credentials', i, 'id'], 'duplicate_id', 'Another query has this id.');
    ids.add(id);
  });
  query.credential_sets?.forEach((set, i) => {
    set.options.forEach((option, j) => {
      option.forEach((id, k) => {
        if (ids.has(id)) return;
        const path = ['credential_sets', i, 'options', j, k];
        report(issues, path, 'options_unknown_id', 'No credential query has this id.');
      });
    });
  });
}

/** How an issuer can be asked for (OpenID4VP 1.0 section 6.1.1). Of another kind no evidence would ever be found. */
const AUTHORITY_TYPES = ['aki', 'etsi_tl'] as const;

/** Ids name members of the response, and those of wallets that use plain objects have a `constructor`. */
function checkName(id: string, path: PropertyKey[], issues: Issues): void {
  if (!isSafeId(id))
    report(issues, path, 'id', 'Use another id; `__proto__`, `constructor` and `prototype` are not allowed.');
}

/** A member that nobody knows would ask for nothing, and its author believes that it does. */
export function checkKnownMeta(credential: CredentialQuery, issues: Issues): void {
  const shape = META_OF_FORMAT.get(credential.format)?.shape;
  if (shape === undefined) return;
  const known = Object.keys(shape);
  for (const name of Object.keys(credential.meta)) {
    if (known.includes(name)) continue;
    report(issues, ['meta', name], 'unknown_member', unknownMember(name, known));
  }
}

export function checkSupported(credential: CredentialQuery, place: PropertyKey[], issues: Issues): void {
  const { id, format, trusted_authorities = [] } = credential;
  checkName(id, [...place, 'id'], issues);
  checkSupportedClaims(credential, place, issues);
  trusted_authorities.forEach(({ type, values }, j) => {
    const path = [...place, 'trusted_authorities', j];
    if (type === 'aki') checkKeyIdentifiers(values, [...path, 'values'], issues);
    if (AUTHORITY_TYPES.some((supported) => supported === type)) return;
    report(issues, [...path, 'type'], 'authority_type', `Supported types: ${AUTHORITY_TYPES.join(', ')}.`);
  });
  if (SUPPORTED_FORMATS.some((supported) => supported === format)) return;
  const message = `Supported formats: ${SUPPORTED_FORMATS.join(', ')}.`;
  report(issues, [...place, 'format'], 'format', message);
}

/** What the grammar allows, and what wallets fail on or refuse the whole request for. */
function checkSupportedClaims(
  { format, claims = [], claim_sets = [] }: CredentialQuery,
  place: PropertyKey[],
  issues: Issues,
): void {
  claims.forEach(({ id = '', path, intent_to_retain }, j) => {
    const claim = [...place, 'claims', j];
    checkName(id, [...claim, 'id'], issues);
    // OpenID4VP 1.0 appendix B.2.4: a member of mdocs
    if (intent_to_retain !== undefined && format !== 'mso_mdoc') {
      report(issues, [...claim, 'intent_to_retain'], 'intent_to_retain', 'It belongs to mso_mdoc.');
    }
    // OpenID4VP 1.0 section 7: a credential is an object, so that null and positions select nothing of it.
    if (path.length > 0 && typeof path[0] !== 'string') {
      report(issues, [...claim, 'path', 0], 'path', 'A path begins with the name of a member.');
    }
  });
  claim_sets.forEach((set, i) => {
    checkOnce(set, [...place, 'claim_sets', i], issues);
  });
}

/** OpenID4VP 1.0 sections 6.1 and 6.2: a set or an option names each id once. */
export function checkOnce(ids: readonly string[], place: PropertyKey[], issues: Issues): void {
  ids.forEach((id, i) => {
    if (ids.indexOf(id) < i) report(issues, [...place, i], 'repeated_id', 'The id stands there already.');
  });
}

/** OpenID4VP 1.0 section 6.1.1.1 */
function checkKeyIdentifiers(values: readonly string[], place: PropertyKey[], issues: Issues): void {
  values.forEach((value, i) => {
    if (decodeBase64url(value) !== undefined) return;
    report(issues, [...place, i], 'aki', 'A key identifier is base64url without padding.');
  });
}
