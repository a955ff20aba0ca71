import { z } from 'zod';
import { comparableName, unknownPropertyMessage } from './closest-name.ts';
import { isJsonObject } from './json.ts';

/** A strict input object: a client that sends `txCode` instead of `tx_code` would otherwise believe that a code is required. */
export function strictInput<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.strictObject(shape, { error: unknownPropertiesMessage });
}

/** An input object that accepts unknown properties, except misspelt ones. */
export function looseInput<Shape extends z.ZodRawShape>(shape: Shape) {
  const knownNames = Object.keys(shape);
  const spelled = new Set(knownNames.map(comparableName));
  // Also reported when another property is missing, because that may be the misspelt one.
  const always = { when: () => true };
  return z.looseObject(shape).superRefine((value, context) => {
    // A string has a key for each of its characters.
    if (!isJsonObject(value)) return;
    for (const name of Object.keys(value)) {
      if (knownNames.includes(name) || !spelled.has(comparableName(name))) continue;
      context.addIssue({ code: 'custom', path: [name], message: unknownPropertyMessage(name, knownNames) });
    }
  }, always);
}

export function isStrictInput(schema: z.ZodObject): boolean {
  return schema.def.error === unknownPropertiesMessage;
}

/** Limit of the reported properties, because searching the intended names takes time. */
const MAX_REPORTED = 50;
const UNKNOWN = 'unknown properties:';

/** A message with one line per unknown property; `messagesByProperty` parses it. */
export function unknownPropertiesMessage(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code !== 'unrecognized_keys') return undefined;
  const knownNames = issue.inst instanceof z.ZodObject ? Object.keys(issue.inst.shape) : [];
  return [UNKNOWN, ...issue.keys.slice(0, MAX_REPORTED).map((name) => unknownPropertyMessage(name, knownNames))].join('\n');
}

/** @returns the messages by property; undefined for a message of the schema's own. */
export function messagesByProperty(issue: z.core.$ZodIssueUnrecognizedKeys): ReadonlyMap<string, string> | undefined {
  const [title, ...words] = issue.message.split('\n');
  return title === UNKNOWN ? new Map(words.map((word, index) => [issue.keys[index] ?? '', word])) : undefined;
}
