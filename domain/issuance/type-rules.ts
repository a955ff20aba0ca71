import { PROTOCOL_CLAIMS } from '../formats/sd-jwt/claim-names.ts';
import type { Frame } from '../formats/sd-jwt/disclosure-frame.ts';
import type { FieldError } from '../shared/failure.ts';
import { isJsonObject, type Json, type JsonObject } from '../shared/json.ts';
import type { ClaimPath } from './credential-config.ts';
import { disclosability } from './disclosability.ts';
import { schemaAt } from './frame-schema.ts';
import type { TypeClaim } from './type-metadata-input.ts';

/** Rules of the type metadata about claims; readers reject a credential that violates them (SD-JWT VC section 5.7). */
export type TypeRules = readonly Pick<TypeClaim, 'path' | 'mandatory' | 'sd'>[];

/** @param vct of a configuration: a type given by name only has no rules here. */
export function typeRules(vct: unknown): TypeRules {
  return isJsonObject(vct) && Array.isArray(vct['claims']) ? (vct['claims'] as unknown as TypeRules) : [];
}

/**
 * Rules that no credential of the configuration could satisfy.
 * @param claims that every credential has, if the configuration contains them.
 */
export function findTypeRuleProblems(
  rules: TypeRules,
  {
    frame,
    schema,
    claims,
  }: { readonly frame: Frame | undefined; readonly schema: JsonObject | undefined; readonly claims: JsonObject | undefined },
): FieldError[] {
  return rules.flatMap((rule, index) => {
    const rulePath = `vct.claims.${index}`;
    const { path, mandatory, sd = 'allowed' } = rule;
    if (PROTOCOL_CLAIMS.has(String(path[0]))) return [];
    const actualDisclosability = disclosability(path, frame);
    if (sd === 'always' && actualDisclosability === 'never') {
      return [{ path: `${rulePath}.sd`, message: 'is always, but disclosureFrame does not contain the claim' }];
    }
    if (sd === 'never' && actualDisclosability !== 'never')
      return [{ path: `${rulePath}.sd`, message: 'is never, but disclosureFrame contains the claim' }];
    if (mandatory !== true) return [];
    if (isExcludedBySchema(schema, path))
      return [{ path: `${rulePath}.mandatory`, message: 'is true, but the schema does not allow the claim' }];
    const isMissing = claims !== undefined && visibilitiesOf(claims, path, undefined).length === 0;
    return isMissing ? [{ path: `${rulePath}.mandatory`, message: 'is true, but claims do not contain it' }] : [];
  });
}

/** Violations for which a holder rejects a credential with these claims (SD-JWT VC sections 5.6.3 and 5.6.4). */
export function findTypeRuleViolations(rules: TypeRules, claims: JsonObject, frame: Frame | undefined): FieldError[] {
  return rules
    .filter(({ path }) => !PROTOCOL_CLAIMS.has(String(path[0])))
    .flatMap(({ path, mandatory, sd = 'allowed' }) => {
      const fault = (message: string) => [{ path: `.${path.join('.')}`, message }];
      const visibilities = visibilitiesOf(claims, path, frame);
      if (visibilities.length === 0) return mandatory === true ? fault('is mandatory but missing') : [];
      if (sd === 'always' && visibilities.includes('visible')) return fault('must be selectively disclosable');
      if (sd === 'never' && visibilities.includes('hidden')) return fault('must not be selectively disclosable');
      return [];
    });
}

function isExcludedBySchema(schema: JsonObject | undefined, path: ClaimPath): boolean {
  let level = schema;
  for (const component of path) {
    if (level === undefined || component === null) return false;
    const subschema: JsonObject | false | undefined = schemaAt(level, component);
    if (subschema === false) return true;
    level = subschema;
  }
  return false;
}

/** Visibility of each value that the path selects: `hidden` if the frame makes it selectively disclosable. */
function visibilitiesOf(value: Json, [component, ...remainingPath]: ClaimPath, frame: Frame | undefined): ('hidden' | 'visible')[] {
  const visibilityAt = (key: string | number, member: Json | undefined) => {
    if (member === undefined) return [];
    if (remainingPath.length > 0) return visibilitiesOf(member, remainingPath, frame?.children.get(String(key)));
    return [frame?.hidden.has(key) === true ? ('hidden' as const) : ('visible' as const)];
  };
  if (Array.isArray(value)) {
    const members = value as readonly Json[];
    if (component === null) return members.flatMap((member, index) => visibilityAt(index, member));
    return typeof component === 'number' ? visibilityAt(component, members[component]) : [];
  }
  if (typeof component !== 'string' || !isJsonObject(value) || !Object.hasOwn(value, component)) return [];
  return visibilityAt(component, value[component]);
}
