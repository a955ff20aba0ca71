import { z } from 'zod';
import { listUpTo, textUpTo } from '../../shared/bounds.ts';
import { unknownMember } from '../../shared/closest-name.ts';
import { isMemberName } from '../../shared/json.ts';

/**
 * What one query may ask. Every response is held against it, so these bound the work of an answer; no wallet's
 * dialogue is near them.
 */
const MAX_CREDENTIALS = 50;
const MAX_CLAIMS = 200;
const MAX_SETS = 50;
const MAX_OPTION_IDS = 50;
const MAX_VALUES = 200;
const MAX_TYPES = 100;
const MAX_AUTHORITIES = 50;
const MAX_AUTHORITY_VALUES = 100;
const MAX_DEPTH = 32;
/** Characters of a name, a value or an address. */
const MAX_TEXT = 1_000;
const MAX_ID = 200;

/** The credential formats this service verifies (OpenID4VP 1.0 appendix B). */
export const SUPPORTED_FORMATS = ['dc+sd-jwt', 'mso_mdoc'] as const;
export type SupportedFormat = (typeof SUPPORTED_FORMATS)[number];

const Text = textUpTo(MAX_TEXT);

/** OpenID4VP 1.0 appendix B.3.5. */
export const SdJwtMeta = z.looseObject({ vct_values: listUpTo(Text, MAX_TYPES) });
/** OpenID4VP 1.0 appendix B.2.3. */
export const MdocMeta = z.looseObject({ doctype_value: Text });

const META_OF_FORMAT: ReadonlyMap<string, typeof SdJwtMeta | typeof MdocMeta> = new Map<
  string,
  typeof SdJwtMeta | typeof MdocMeta
>([
  ['dc+sd-jwt', SdJwtMeta],
  ['mso_mdoc', MdocMeta],
]);

// OpenID4VP 1.0 section 6.1: alphanumeric, underscore and hyphen, never empty.
const Id = z
  .string()
  .max(MAX_ID)
  .regex(/^[A-Za-z0-9_-]+$/, 'Use letters, digits, "_" and "-" only.');

// OpenID4VP 1.0 section 7: a key, a wildcard or a position.
const PathComponent = z.union([z.string().max(MAX_TEXT), z.null(), z.int().nonnegative()]);

// OpenID4VP 1.0 section 6.3: neither null nor a structure nor a fraction can be asked for.
const Value = z.union([z.string().max(MAX_TEXT), z.int(), z.boolean()]);

const Claim = z.looseObject({
  id: Id.optional(),
  path: listUpTo(PathComponent, MAX_DEPTH),
  values: listUpTo(Value, MAX_VALUES).optional(),
  intent_to_retain: z.boolean().optional(),
});

const Authority = z.looseObject({
  type: Text,
  values: listUpTo(Text, MAX_AUTHORITY_VALUES),
});

const claimsOf = <S extends z.ZodType>(claim: S) => listUpTo(claim, MAX_CLAIMS);
const authoritiesOf = <S extends z.ZodType>(authority: S) => listUpTo(authority, MAX_AUTHORITIES);

const CredentialShape = z.looseObject({
  id: Id,
  format: Text,
  meta: z.looseObject({}),
  multiple: z.boolean().optional(),
  claims: claimsOf(Claim).optional(),
  claim_sets: listUpTo(listUpTo(Id, MAX_CLAIMS), MAX_SETS).optional(),
  trusted_authorities: authoritiesOf(Authority).optional(),
  require_cryptographic_holder_binding: z.boolean().optional(),
});

const CredentialSet = z.looseObject({
  options: listUpTo(listUpTo(Id, MAX_OPTION_IDS), MAX_SETS),
  required: z.boolean().optional(),
});

type Issues = {
  addIssue(issue: { code: 'custom'; path: PropertyKey[]; message: string; params: object }): void;
};

function report(issues: Issues, path: PropertyKey[], rule: string, message: string): void {
  issues.addIssue({ code: 'custom', path, message, params: { rule } });
}

function checkMeta(credential: z.infer<typeof CredentialShape>, issues: Issues): void {
  const read = META_OF_FORMAT.get(credential.format)?.safeParse(credential.meta);
  for (const issue of read?.error?.issues ?? []) {
    report(issues, ['meta', ...issue.path], String(issue.path[0]), issue.message);
  }
}

function checkClaims(credential: z.infer<typeof CredentialShape>, issues: Issues): void {
  const ids = new Set<string>();
  const paths = new Set<string>();
  credential.claims?.forEach((claim, i) => {
    // OpenID4VP 1.0 section 6.3: an id appears once within one credential query.
    if (claim.id !== undefined && ids.has(claim.id)) {
      report(issues, ['claims', i, 'id'], 'duplicate_claim_id', 'Another claim has this id.');
    }
    if (claim.id !== undefined) ids.add(claim.id);
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

function checkClaimSets(
  credential: z.infer<typeof CredentialShape>,
  ids: ReadonlySet<string>,
  issues: Issues,
): void {
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

function checkCredential(credential: z.infer<typeof CredentialShape>, issues: Issues): void {
  checkMeta(credential, issues);
  checkClaims(credential, issues);
}

function checkIds(query: IdsOfQuery, issues: Issues): void {
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

type IdsOfQuery = {
  readonly credentials: readonly { readonly id: string }[];
  readonly credential_sets?: readonly z.infer<typeof CredentialSet>[] | undefined;
};

/**
 * A query in the Digital Credentials Query Language (OpenID4VP 1.0 section 6). Members we do not know are kept
 * and mean nothing. A fault of a rule that spans members names it in `params.rule`. Any format is grammatical.
 */
export const DcqlQuery = z
  .looseObject({
    credentials: listUpTo(CredentialShape.superRefine(checkCredential), MAX_CREDENTIALS),
    credential_sets: listUpTo(CredentialSet, MAX_SETS).optional(),
  })
  .superRefine(checkIds);
export type DcqlQuery = Readonly<z.infer<typeof DcqlQuery>>;

/** How an issuer can be asked for (OpenID4VP 1.0 section 6.1.1). Of another kind no evidence would ever be found. */
const AUTHORITY_TYPES = ['aki', 'etsi_tl'] as const;

/** A member of this name is refused in every answer. */
function checkName(id: string, path: PropertyKey[], issues: Issues): void {
  if (!isMemberName(id))
    report(issues, path, 'id', 'Use another name; answers with a member of this one are refused.');
}

/** A member that nobody knows would ask for nothing, and its author believes that it does. */
function checkKnownMeta(credential: z.infer<typeof CredentialShape>, issues: Issues): void {
  const shape = META_OF_FORMAT.get(credential.format)?.shape;
  if (shape === undefined) return;
  const known = Object.keys(shape);
  for (const name of Object.keys(credential.meta)) {
    if (known.includes(name)) continue;
    report(issues, ['meta', name], 'unknown_member', unknownMember(name, known));
  }
}

const KnownCredential = CredentialShape.extend({
  claims: claimsOf(Claim.strict()).optional(),
  trusted_authorities: authoritiesOf(Authority.strict()).optional(),
})
  .strict()
  .superRefine((credential, issues) => {
    checkCredential(credential, issues);
    checkKnownMeta(credential, issues);
  });

/**
 * What a presentation configuration may ask: the grammar, in what we can verify afterwards, and nothing that we do not
 * know: a misspelt `trusted_authorities` would accept every issuer.
 */
export const SupportedDcqlQuery = z
  .strictObject({
    credentials: listUpTo(KnownCredential, MAX_CREDENTIALS),
    credential_sets: listUpTo(CredentialSet.strict(), MAX_SETS).optional(),
  })
  .superRefine((query, issues) => {
    checkIds(query, issues);
    query.credentials.forEach((credential, i) => {
      checkSupported(credential, ['credentials', i], issues);
    });
  });

function checkSupported(
  { id, format, claims = [], trusted_authorities = [] }: z.infer<typeof KnownCredential>,
  place: PropertyKey[],
  issues: Issues,
): void {
  checkName(id, [...place, 'id'], issues);
  claims.forEach((claim, j) => {
    checkName(claim.id ?? '', [...place, 'claims', j, 'id'], issues);
  });
  trusted_authorities.forEach(({ type }, j) => {
    if (AUTHORITY_TYPES.some((supported) => supported === type)) return;
    const path = [...place, 'trusted_authorities', j, 'type'];
    report(issues, path, 'authority_type', `Supported types: ${AUTHORITY_TYPES.join(', ')}.`);
  });
  if (SUPPORTED_FORMATS.some((supported) => supported === format)) return;
  const message = `Supported formats: ${SUPPORTED_FORMATS.join(', ')}.`;
  report(issues, [...place, 'format'], 'format', message);
}
