import { PROTOCOL_CLAIMS } from '../formats/sd-jwt/claim-names.ts';
import type { Frame } from '../formats/sd-jwt/disclosure-frame.ts';
import { closestName } from '../shared/closest-name.ts';
import type { FieldError } from '../shared/failure.ts';
import { isJsonObject, type Json, type JsonObject, valueAt } from '../shared/json.ts';
import type { ClaimPath } from './credential-config.ts';
import { schemaAt } from './frame-schema.ts';

/** Limit of the problems that are reported per object. */
const MAX_FAULTS = 20;

/** Descriptions of the claims in a configuration: example values, claims paths, a JSON Schema. */
export type DescribedClaims = {
  readonly values: readonly Json[];
  readonly paths: readonly ClaimPath[];
  readonly schema: JsonObject | undefined;
};

/**
 * Properties that only the disclosure frame names. A misspelt name hides nothing, so the intended claim would always be visible. Objects
 * without described properties may have any.
 */
export function findUnknownFrameNames(frame: Frame, claims: DescribedClaims, path: string): readonly FieldError[] {
  const names = propertyNames(claims);
  const isUnknown = (key: string | number) =>
    typeof key === 'string' && names.size > 0 && !names.has(key) && !PROTOCOL_CLAIMS.has(key) && !mayAllow(claims.schema, key);
  const fault = (place: string, key: string | number): FieldError => {
    const suggestion = closestName(String(key), [...names]);
    const hint = suggestion === undefined ? '' : `; did you mean ${suggestion}?`;
    return {
      path: place,
      message: `the configuration has no claim "${key}"${hint ? hint : '; name it in schema.properties, config.claims or claims'}`,
    };
  };
  const hidden = [...frame.hidden]
    .filter(isUnknown)
    .slice(0, MAX_FAULTS)
    .map((key) => fault(`${path}._sd`, key));
  const nestedProblems = [...frame.children].flatMap(([key, child]) =>
    isUnknown(key) ? [fault(path, key)] : findUnknownFrameNames(child, claimsBelow(claims, key), `${path}.${key}`),
  );
  return [...hidden, ...nestedProblems];
}

/** Property names that the claims or their descriptions use at this level; none for arrays. */
function propertyNames({ values, paths, schema }: DescribedClaims): ReadonlySet<string> {
  const members = values.filter(isJsonObject).flatMap((value) => Object.keys(value));
  const described = paths.map(([name]) => String(name));
  const isArray = values.some(Array.isArray) || paths.some(([name]) => typeof name !== 'string');
  if (isArray || members.length + described.length === 0) return new Set();
  const schemaNames = isJsonObject(schema?.['properties']) ? Object.keys(schema['properties']) : [];
  return new Set([...members, ...described, ...schemaNames]);
}

/** Keywords that may allow further properties; they are not evaluated. */
const OPEN_KEYWORDS = [
  '$ref',
  '$dynamicRef',
  'allOf',
  'anyOf',
  'oneOf',
  'if',
  'dependentSchemas',
  'patternProperties',
  'additionalProperties',
];

/** The schema may allow a property that it does not list; properties that it rules out are reported by `findFrameProblems`. */
function mayAllow(schema: JsonObject | undefined, name: string): boolean {
  if (schema === undefined) return false;
  return schemaAt(schema, name) === false || OPEN_KEYWORDS.some((keyword) => schema[keyword] !== undefined);
}

function claimsBelow({ values, paths, schema }: DescribedClaims, key: string): DescribedClaims {
  const subschema = schema === undefined ? undefined : schemaAt(schema, key);
  return {
    values: values.map((value) => valueAt(value, [key]) as Json | undefined).filter((value) => value !== undefined),
    paths: paths
      .filter(([name]) => name === null || String(name) === key)
      .map((path) => path.slice(1))
      .filter(({ length }) => length > 0),
    schema: subschema === false ? undefined : subschema,
  };
}
