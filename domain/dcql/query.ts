import { looseObject, strictObject, z } from 'zod';
import { listUpTo, textUpTo } from '../shared/bounds.ts';
import { MAX_TEXT, SUPPORTED_FORMATS } from './formats.ts';
import {
  addProblems,
  findCredentialProblems,
  findIdProblems,
  findRepeatedIdProblems,
  findUnknownMetaProblems,
  findUnsupportedProblems,
} from './query-rules.ts';

/** Limits of a query. Every response is matched against it, so they bound the work; dialogs of wallets stay far below them. */
const MAX_CREDENTIALS = 50;
const MAX_CLAIMS = 200;
const MAX_SETS = 50;
const MAX_OPTION_IDS = 50;
const MAX_VALUES = 200;
const MAX_AUTHORITIES = 50;
const MAX_AUTHORITY_VALUES = 100;
const MAX_DEPTH = 32;
const MAX_ID = 200;

const Text = textUpTo(MAX_TEXT);

// OpenID4VP 1.0 section 6.1: alphanumeric, underscore and hyphen, never empty.
const Id = z
  .string()
  .max(MAX_ID)
  .regex(/^[A-Za-z0-9_-]+$/, 'Use letters, digits, "_" and "-" only.');

// OpenID4VP 1.0 section 7: a key, a wildcard or a position.
const PathComponent = z.union([z.string().max(MAX_TEXT), z.null(), z.int().nonnegative()]);

/** Wallets use signed 32-bit numbers, and some fail above the maximum. */
const MAX_POSITION = 2 ** 31 - 1;

// OpenID4VP 1.0 section 6.3: null, structures and fractions cannot be requested.
const Value = z.union([z.string().max(MAX_TEXT), z.int(), z.boolean()]);

const Claim = looseObject({
  id: Id.optional(),
  path: listUpTo(PathComponent, MAX_DEPTH),
  values: listUpTo(Value, MAX_VALUES).optional(),
  intent_to_retain: z.boolean().optional(),
});

const Authority = looseObject({ type: Text, values: listUpTo(Text, MAX_AUTHORITY_VALUES) });

const claimsOf = <S extends z.ZodType>(claim: S) => listUpTo(claim, MAX_CLAIMS);
const authoritiesOf = <S extends z.ZodType>(authority: S) =>
  listUpTo(authority, MAX_AUTHORITIES).describe(
    'Accepted issuers. aki: the key identifier, base64url, of an anchor of this configuration that certifies ' +
      'the credential, or the SHA-1 hash of its key if its certificate has none; key identifiers in the chain of a ' +
      'credential are ignored. etsi_tl: the address of a trust list among the anchors',
  );

const CredentialShape = looseObject({
  id: Id,
  format: Text,
  meta: looseObject({}),
  multiple: z.boolean().optional(),
  claims: claimsOf(Claim).optional(),
  claim_sets: listUpTo(listUpTo(Id, MAX_CLAIMS), MAX_SETS).optional(),
  trusted_authorities: authoritiesOf(Authority).optional(),
  require_cryptographic_holder_binding: z.boolean().optional(),
});

const CredentialSet = looseObject({ options: listUpTo(listUpTo(Id, MAX_OPTION_IDS), MAX_SETS), required: z.boolean().optional() });

/**
 * A query in the Digital Credentials Query Language (OpenID4VP 1.0 section 6). Unknown properties are retained without effect. Violations
 * of rules about several properties have the rule in `params.rule`. Any format is grammatical.
 */
export const DcqlQuery = looseObject({
  credentials: listUpTo(
    CredentialShape.superRefine((credential, issues) => addProblems(findCredentialProblems(credential), issues)),
    MAX_CREDENTIALS,
  ),
  credential_sets: listUpTo(CredentialSet, MAX_SETS).optional(),
}).superRefine((query, issues) => addProblems(findIdProblems(query), issues));
export type DcqlQuery = Readonly<z.infer<typeof DcqlQuery>>;

const SupportedPath = listUpTo(z.union([z.string().max(MAX_TEXT), z.null(), z.int().nonnegative().max(MAX_POSITION)]), MAX_DEPTH).meta({
  description: 'Property names, positions, or null for all entries of an array; the first element is a name',
  // A separate schema, because client generators take it for the complete type of a path beside `items`.
  allOf: [{ prefixItems: [{ type: 'string' }] }],
});

/** OpenID4VP 1.0 sections 6.1 and 6.2: a set or an option names each id once. */
const onceOf = (limit: number) => listUpTo(listUpTo(Id, limit).meta({ uniqueItems: true }), MAX_SETS);

const SupportedCredential = CredentialShape.extend({
  // The message for another format comes from findUnsupportedProblems, which names those that are supported.
  format: Text.meta({ enum: [...SUPPORTED_FORMATS] }),
  claims: claimsOf(
    Claim.extend({
      path: SupportedPath,
      intent_to_retain: z.boolean().optional().describe('mso_mdoc only: true if the verifier stores the element'),
    }).strict(),
  ).optional(),
  claim_sets: onceOf(MAX_CLAIMS).optional(),
  trusted_authorities: authoritiesOf(Authority.strict()).optional(),
})
  .strict()
  .superRefine((credential, issues) => {
    addProblems(findCredentialProblems(credential), issues);
    addProblems(findUnknownMetaProblems(credential), issues);
  });

/**
 * The query of a presentation configuration: restricted to what can be verified, without unknown properties, because a misspelt
 * `trusted_authorities` would accept every issuer.
 */
export const SupportedDcqlQuery = strictObject({
  credentials: listUpTo(SupportedCredential, MAX_CREDENTIALS),
  credential_sets: listUpTo(CredentialSet.extend({ options: onceOf(MAX_OPTION_IDS) }).strict(), MAX_SETS).optional(),
}).superRefine((query, issues) => {
  addProblems(findIdProblems(query), issues);
  query.credentials.forEach((credential, i) => {
    addProblems(findUnsupportedProblems(credential, ['credentials', i]), issues);
  });
  query.credential_sets?.forEach(({ options }, i) => {
    options.forEach((option, j) => {
      addProblems(findRepeatedIdProblems(option, ['credential_sets', i, 'options', j]), issues);
    });
  });
});
