import { PROTOCOL_CLAIMS } from '../formats/sd-jwt/claim-names.ts';
import type { Frame } from '../formats/sd-jwt/disclosure-frame.ts';
import { closestName } from '../shared/closest-name.ts';
import type { FieldError } from '../shared/failure.ts';
import { isJsonObject, type Json, type JsonObject, valueAt } from '../shared/json.ts';
import type { ClaimPath } from './credential-config.ts';
import { schemaAt } from './frame-schema.ts';

/** Faults that are told at one place. */
const MAX_FAULTS = 20;

/** What a configuration says of the claims at one place: examples of values, paths that lead on, a JSON Schema. */
export type KnownClaims = {
  readonly values: readonly Json[];
  readonly paths: readonly ClaimPath[];
  readonly schema: JsonObject | undefined;
};

/**
 * Members that a disclosure frame names and nobody else does. A misspelt one hides nothing, so the claim that was meant
 * is visible for everybody. Where no members are known, any may come.
 */
export function strangersIn(frame: Frame, known: KnownClaims, path: string): readonly FieldError[] {
  const names = memberNames(known);
  const isStranger = (key: string | number) =>
    typeof key === 'string' && names.size > 0 && !names.has(key) && !PROTOCOL_CLAIMS.has(key) && !mayHave(known.schema, key);
  const fault = (place: string, key: string | number): FieldError => {
    const meant = closestName(String(key), [...names]);
    const question = meant === undefined ? '' : `; did you mean ${meant}?`;
    return {
      path: place,
      message: `no claim of this configuration is called "${key}"${question ? question : '; name it in schema.properties, config.claims or claims'}`,
    };
  };
  const hidden = [...frame.hidden]
    .filter(isStranger)
    .slice(0, MAX_FAULTS)
    .map((key) => fault(`${path}._sd`, key));
  const below = [...frame.children].flatMap(([key, child]) =>
    isStranger(key) ? [fault(path, key)] : strangersIn(child, inside(known, key), `${path}.${key}`),
  );
  return [...hidden, ...below];
}

/** The names that claims themselves or their descriptions use here; none where arrays are. */
function memberNames({ values, paths, schema }: KnownClaims): ReadonlySet<string> {
  const members = values.filter(isJsonObject).flatMap((value) => Object.keys(value));
  const described = paths.map(([first]) => String(first));
  const isArray = values.some(Array.isArray) || paths.some(([first]) => typeof first !== 'string');
  if (isArray || members.length + described.length === 0) return new Set();
  const listed = isJsonObject(schema?.['properties']) ? Object.keys(schema['properties']) : [];
  return new Set([...members, ...described, ...listed]);
}

/** Parts of a schema whose members are not looked for. */
const ELSEWHERE = ['$ref', '$dynamicRef', 'allOf', 'anyOf', 'oneOf', 'if', 'dependentSchemas', 'patternProperties', 'additionalProperties'];

/** Whether the schema may speak of a member beside those that it lists; what it rules out is told elsewhere. */
function mayHave(schema: JsonObject | undefined, name: string): boolean {
  if (schema === undefined) return false;
  return schemaAt(schema, name) === false || ELSEWHERE.some((keyword) => schema[keyword] !== undefined);
}

function inside({ values, paths, schema }: KnownClaims, key: string): KnownClaims {
  const next = schema === undefined ? undefined : schemaAt(schema, key);
  return {
    values: values.map((value) => valueAt(value, [key]) as Json | undefined).filter((value) => value !== undefined),
    paths: paths
      .filter(([first]) => first === null || String(first) === key)
      .map((path) => path.slice(1))
      .filter(({ length }) => length > 0),
    schema: next === false ? undefined : next,
  };
}
