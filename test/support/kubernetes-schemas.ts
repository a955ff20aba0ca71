import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

type Schema = { [name: string]: unknown };
type Kind = { readonly group: string; readonly version: string; readonly kind: string };

/** Those two are written as text and as numbers. */
const OR_NUMBER = ['int-or-string', 'quantity'];
const MAX_DEPTH = 40;

/**
 * Makes schemas for kubeconform out of the API of Kubernetes itself, one file for each kind: what the API does not know is
 * refused, which its own document does not say.
 * @param wanted kinds; some others describe schemas themselves and have no end.
 */
export function writeSchemas(document: string, folder: string, wanted: readonly string[]): void {
  const { definitions } = JSON.parse(readFileSync(document, 'utf8')) as {
    definitions: Record<string, Schema>;
  };
  mkdirSync(folder, { recursive: true });
  for (const definition of Object.values(definitions)) {
    const kinds = (definition['x-kubernetes-group-version-kind'] ?? []) as readonly Kind[];
    if (kinds.length !== 1 || !Object.hasOwn((definition['properties'] ?? {}) as object, 'metadata'))
      continue;
    const [{ group, version, kind }] = kinds as readonly [Kind];
    if (!wanted.includes(kind)) continue;
    const name = [kind.toLowerCase(), ...(group === '' ? [] : [group.split('.')[0]]), version].join('-');
    writeFileSync(join(folder, `${name}.json`), JSON.stringify(strict(definition, definitions, 0)));
  }
}

function strict(schema: Schema, definitions: Readonly<Record<string, Schema>>, depth: number): Schema {
  const { $ref: reference } = schema;
  if (depth > MAX_DEPTH) return {};
  if (typeof reference === 'string') {
    const name = reference.slice('#/definitions/'.length);
    const found = definitions[name] ?? {};
    const format = name.endsWith('.Quantity') ? { format: 'quantity' } : {};
    return strict({ ...found, ...format }, definitions, depth + 1);
  }
  const { type, format, properties, items, additionalProperties: others, required } = schema;
  if (typeof format === 'string' && OR_NUMBER.includes(format)) return { type: ['string', 'number'] };
  const inner = (each: unknown) => strict(each as Schema, definitions, depth + 1);
  const result: Schema = {
    ...(type === undefined ? {} : { type }),
    ...(required === undefined ? {} : { required }),
  };
  if (Array.isArray(schema['enum'])) result['enum'] = schema['enum'];
  if (items !== undefined) result['items'] = inner(items);
  if (typeof others === 'object' && others !== null) result['additionalProperties'] = inner(others);
  if (properties !== undefined) {
    const entries = Object.entries(properties as object).map(([name, each]) => [name, inner(each)]);
    result['properties'] = Object.fromEntries(entries);
    if (others === undefined) result['additionalProperties'] = false;
  }
  return result;
}
