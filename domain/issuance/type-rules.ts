import { PROTOCOL_CLAIMS } from '../formats/sd-jwt/claim-names.ts';
import type { Frame } from '../formats/sd-jwt/disclosure-frame.ts';
import type { FieldError } from '../shared/failure.ts';
import { isJsonObject, type Json, type JsonObject } from '../shared/json.ts';
import type { ClaimPath } from './credential-config.ts';
import { disclosability } from './disclosability.ts';
import { schemaAt } from './frame-schema.ts';
import type { TypeClaim } from './type-metadata-input.ts';

/** What the metadata of a type says of its claims; readers refuse a credential that does otherwise (SD-JWT VC section 5.7). */
export type TypeRules = readonly Pick<TypeClaim, 'path' | 'mandatory' | 'sd'>[];

/** @param vct of a configuration: a type that is only named has no rules here. */
export function typeRules(vct: unknown): TypeRules {
  return isJsonObject(vct) && Array.isArray(vct['claims']) ? (vct['claims'] as unknown as TypeRules) : [];
}

/**
 * Rules that no credential of the configuration could keep.
 * @param claims that every credential has, where the configuration itself holds them.
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
    const place = `vct.claims.${index}`;
    const { path, mandatory, sd = 'allowed' } = rule;
    if (PROTOCOL_CLAIMS.has(String(path[0]))) return [];
    const hidden = disclosability(path, frame);
    if (sd === 'always' && hidden === 'never') {
      return [{ path: `${place}.sd`, message: 'is always, but disclosureFrame does not name the claim' }];
    }
    if (sd === 'never' && hidden !== 'never') return [{ path: `${place}.sd`, message: 'is never, but disclosureFrame names the claim' }];
    if (mandatory !== true) return [];
    if (isRuledOut(schema, path)) return [{ path: `${place}.mandatory`, message: 'is true, but the schema has no place for the claim' }];
    const isMissing = claims !== undefined && placesOf(claims, path, undefined).length === 0;
    return isMissing ? [{ path: `${place}.mandatory`, message: 'is true, but claims do not have it' }] : [];
  });
}

/** What a holder refuses of a credential with these claims (SD-JWT VC sections 5.6.3 and 5.6.4). */
export function brokenRules(rules: TypeRules, claims: JsonObject, frame: Frame | undefined): FieldError[] {
  return rules
    .filter(({ path }) => !PROTOCOL_CLAIMS.has(String(path[0])))
    .flatMap(({ path, mandatory, sd = 'allowed' }) => {
      const fault = (message: string) => [{ path: `.${path.join('.')}`, message }];
      const places = placesOf(claims, path, frame);
      if (places.length === 0) return mandatory === true ? fault('is mandatory, but missing') : [];
      if (sd === 'always' && places.includes('visible')) return fault('has to be selectively disclosable');
      if (sd === 'never' && places.includes('hidden')) return fault('must not be selectively disclosable');
      return [];
    });
}

function isRuledOut(schema: JsonObject | undefined, path: ClaimPath): boolean {
  let level = schema;
  for (const component of path) {
    if (level === undefined || component === null) return false;
    const below: JsonObject | false | undefined = schemaAt(level, component);
    if (below === false) return true;
    level = below;
  }
  return false;
}

/** Of each value that the path selects, whether the frame lets holders withhold just that. */
function placesOf(value: Json, [component, ...rest]: ClaimPath, frame: Frame | undefined): ('hidden' | 'visible')[] {
  const at = (key: string | number, member: Json | undefined) => {
    if (member === undefined) return [];
    if (rest.length > 0) return placesOf(member, rest, frame?.children.get(String(key)));
    return [frame?.hidden.has(key) === true ? ('hidden' as const) : ('visible' as const)];
  };
  if (Array.isArray(value)) {
    const members = value as readonly Json[];
    if (component === null) return members.flatMap((member, index) => at(index, member));
    return typeof component === 'number' ? at(component, members[component]) : [];
  }
  if (typeof component !== 'string' || !isJsonObject(value) || !Object.hasOwn(value, component)) return [];
  return at(component, value[component]);
}
