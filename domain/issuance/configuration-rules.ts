import { parseDisclosureFrame } from '../formats/sd-jwt/disclosure-frame.ts';
import { findSdJwtClaimProblems } from '../formats/sd-jwt/issue.ts';
import { Failure, type FieldError } from '../shared/failure.ts';
import { isJsonObject, type Json, type JsonObject } from '../shared/json.ts';
import type { ClaimPath, CredentialConfig } from './credential-config.ts';
import { findClaimTypeProblems } from './element-types.ts';
import { type KnownClaims, strangersIn } from './frame-names.ts';
import { findFrameProblems } from './frame-schema.ts';
import { findMdocProblems, findMdocTypeProblems, staticElements } from './mdoc-claims.ts';
import { findAlgorithmProblems, findBindingMethodProblems } from './stated-abilities.ts';
import { findTypeRuleProblems, typeRules } from './type-rules.ts';

/** The members of a credential configuration that have to fit each other. */
type Judged = {
  readonly config: CredentialConfig;
  readonly vct?: unknown;
  readonly claims?: JsonObject | null | undefined;
  readonly disclosureFrame?: JsonObject | null | undefined;
  readonly keyBinding: boolean;
  readonly proofTypes?: unknown;
  readonly keyAttestationsRequired?: unknown;
  readonly schema?: JsonObject | null | undefined;
  readonly claimsWebhook?: unknown;
};

/** What is wrong with a configuration although each member by itself is fine. */
export function findConfigurationProblems(body: Judged): readonly FieldError[] {
  const isMdoc = body.config.format === 'mso_mdoc';
  return [
    ...findBindingProblems(body),
    ...findBindingMethodProblems(body.config, body.keyBinding),
    ...findAlgorithmProblems(body.config),
    ...(isMdoc ? findMdocConfigurationProblems(body) : findSdJwtConfigurationProblems(body)),
  ];
}

function findBindingProblems({ config, keyBinding, ...body }: Judged): FieldError[] {
  if (keyBinding) return [];
  // ISO/IEC 18013-5 section 9.1.2.4: deviceKeyInfo is mandatory.
  if (config.format === 'mso_mdoc') return [{ path: 'keyBinding', message: 'an mdoc is always bound to a key of the device' }];
  return (['proofTypes', 'keyAttestationsRequired'] as const)
    .filter((name) => isGiven(body[name]))
    .map((path) => ({ path, message: 'needs keyBinding: nothing is proved for a credential without a key' }));
}

function findMdocConfigurationProblems(body: Judged): readonly FieldError[] {
  const foreign = (['vct', 'disclosureFrame'] as const)
    .filter((name) => isGiven(body[name]))
    .map((path) => ({ path, message: 'belongs to dc+sd-jwt' }));
  const { config, claims } = body;
  const held = staticElements(config);
  if (isGiven(claims) && held !== undefined) {
    return [...foreign, { path: 'claims', message: 'give either claims or config.claimsByNamespace' }];
  }
  const place = isGiven(claims) ? 'claims' : 'config.claimsByNamespace';
  const elements = claims ?? held;
  const formFaults = elements === undefined ? [] : findMdocProblems(config, elements);
  const faults = elements === undefined || formFaults.length > 0 ? formFaults : findMdocTypeProblems(config, elements).slice(0, MAX_FAULTS);
  return [...foreign, ...faults.map(({ path, message }) => ({ path: place + path, message }))];
}

/** More faults are not reported at once. */
const MAX_FAULTS = 20;

function findSdJwtConfigurationProblems(body: Judged): readonly FieldError[] {
  const { disclosureFrame, schema, claims, claimsWebhook } = body;
  try {
    const frame = isGiven(disclosureFrame) ? parseDisclosureFrame(disclosureFrame) : undefined;
    const faults = isGiven(claims) ? [...findSdJwtClaimProblems(claims, frame), ...findClaimTypeProblems(body.vct, claims)] : [];
    const rules = findTypeRuleProblems(typeRules(body.vct), {
      frame,
      schema: schema ?? undefined,
      claims: isGiven(claimsWebhook) ? undefined : (claims ?? undefined),
    });
    const all = [
      ...faults.map(({ path, message }) => ({ path: `claims${path}`, message })),
      ...rules,
      ...(frame !== undefined && isGiven(schema) ? findFrameProblems(frame, schema, 'disclosureFrame') : []),
      ...(frame !== undefined && !isGiven(claimsWebhook) ? strangersIn(frame, knownClaims(body), 'disclosureFrame') : []),
    ];
    return all.slice(0, MAX_FAULTS);
  } catch (error) {
    if (error instanceof Failure) return error.details.errors ?? [];
    throw error;
  }
}

function knownClaims({ claims, config, vct, schema }: Judged): KnownClaims {
  const ofType = isJsonObject(vct) && Array.isArray(vct['claims']) ? (vct['claims'] as readonly Json[]) : [];
  const paths = ofType.flatMap((entry) => (isJsonObject(entry) && Array.isArray(entry['path']) ? [entry['path'] as ClaimPath] : []));
  return {
    values: isGiven(claims) ? [claims] : [],
    paths: [...(config.claims ?? []).map(({ path }) => path), ...paths],
    schema: schema ?? undefined,
  };
}

function isGiven<T>(value: T | null | undefined): value is T {
  return value !== undefined && value !== null;
}
