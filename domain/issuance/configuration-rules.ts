import { parseDisclosureFrame } from '../formats/sd-jwt/disclosure-frame.ts';
import { findSdJwtClaimProblems } from '../formats/sd-jwt/issue.ts';
import { Failure, type FieldError } from '../shared/failure.ts';
import { isJsonObject, type Json, type JsonObject } from '../shared/json.ts';
import type { ClaimPath, CredentialConfig } from './credential-config.ts';
import { findAlgorithmProblems, findBindingMethodProblems } from './declared-capabilities.ts';
import { findClaimTypeProblems } from './element-types.ts';
import { type DescribedClaims, findUnknownFrameNames } from './frame-names.ts';
import { findFrameProblems } from './frame-schema.ts';
import { findMdocProblems, findMdocTypeProblems, staticElements } from './mdoc-claims.ts';
import { findTypeRuleProblems, typeRules } from './type-rules.ts';

type ConfigurationProperties = {
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

/** Inconsistencies between properties that are valid individually. */
export function findConfigurationProblems(body: ConfigurationProperties): readonly FieldError[] {
  const isMdoc = body.config.format === 'mso_mdoc';
  return [
    ...findBindingProblems(body),
    ...findBindingMethodProblems(body.config, body.keyBinding),
    ...findAlgorithmProblems(body.config),
    ...(isMdoc ? findMdocConfigurationProblems(body) : findSdJwtConfigurationProblems(body)),
  ];
}

function findBindingProblems({ config, keyBinding, ...body }: ConfigurationProperties): FieldError[] {
  if (keyBinding) return [];
  // ISO/IEC 18013-5 section 9.1.2.4: deviceKeyInfo is mandatory.
  if (config.format === 'mso_mdoc') return [{ path: 'keyBinding', message: 'an mdoc is always bound to a key of the device' }];
  return (['proofTypes', 'keyAttestationsRequired'] as const)
    .filter((name) => isDefined(body[name]))
    .map((path) => ({ path, message: 'requires keyBinding: a credential without a key has no proof' }));
}

function findMdocConfigurationProblems(body: ConfigurationProperties): readonly FieldError[] {
  const sdJwtOnlyProblems = (['vct', 'disclosureFrame'] as const)
    .filter((name) => isDefined(body[name]))
    .map((path) => ({ path, message: 'is only allowed for dc+sd-jwt' }));
  const { config, claims } = body;
  const staticClaims = staticElements(config);
  if (isDefined(claims) && staticClaims !== undefined) {
    return [...sdJwtOnlyProblems, { path: 'claims', message: 'set either claims or config.claimsByNamespace' }];
  }
  const claimsPath = isDefined(claims) ? 'claims' : 'config.claimsByNamespace';
  const elements = claims ?? staticClaims;
  const formFaults = elements === undefined ? [] : findMdocProblems(config, elements);
  const faults = elements === undefined || formFaults.length > 0 ? formFaults : findMdocTypeProblems(config, elements).slice(0, MAX_FAULTS);
  return [...sdJwtOnlyProblems, ...faults.map(({ path, message }) => ({ path: claimsPath + path, message }))];
}

/** Limit of the problems that are reported at once. */
const MAX_FAULTS = 20;

function findSdJwtConfigurationProblems(body: ConfigurationProperties): readonly FieldError[] {
  const { disclosureFrame, schema, claims, claimsWebhook } = body;
  try {
    const frame = isDefined(disclosureFrame) ? parseDisclosureFrame(disclosureFrame) : undefined;
    const faults = isDefined(claims) ? [...findSdJwtClaimProblems(claims, frame), ...findClaimTypeProblems(body.vct, claims)] : [];
    const rules = findTypeRuleProblems(typeRules(body.vct), {
      frame,
      schema: schema ?? undefined,
      claims: isDefined(claimsWebhook) ? undefined : (claims ?? undefined),
    });
    const problems = [
      ...faults.map(({ path, message }) => ({ path: `claims${path}`, message })),
      ...rules,
      ...(frame !== undefined && isDefined(schema) ? findFrameProblems(frame, schema, 'disclosureFrame') : []),
      ...(frame !== undefined && !isDefined(claimsWebhook) ? findUnknownFrameNames(frame, describedClaims(body), 'disclosureFrame') : []),
    ];
    return problems.slice(0, MAX_FAULTS);
  } catch (error) {
    if (error instanceof Failure) return error.details.errors ?? [];
    throw error;
  }
}

function describedClaims({ claims, config, vct, schema }: ConfigurationProperties): DescribedClaims {
  const ofType = isJsonObject(vct) && Array.isArray(vct['claims']) ? (vct['claims'] as readonly Json[]) : [];
  const paths = ofType.flatMap((entry) => (isJsonObject(entry) && Array.isArray(entry['path']) ? [entry['path'] as ClaimPath] : []));
  return {
    values: isDefined(claims) ? [claims] : [],
    paths: [...(config.claims ?? []).map(({ path }) => path), ...paths],
    schema: schema ?? undefined,
  };
}

function isDefined<T>(value: T | null | undefined): value is T {
  return value !== undefined && value !== null;
}
