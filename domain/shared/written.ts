import { z } from 'zod';
import { letters, unknownMember } from './closest-name.ts';
import { isJsonObject } from './json.ts';

/**
 * An object that people write. A member that it does not know is refused: one who wrote `txCode` for `tx_code` would
 * believe that a code is asked for.
 */
export function written<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.strictObject(shape, { error: misspelt });
}

/** The same where other members are welcome: one that only looks like a known one is not. */
export function writtenFreely<Shape extends z.ZodRawShape>(shape: Shape) {
  const known = Object.keys(shape);
  const spelled = new Set(known.map(letters));
  // Also where another member is missing: that may be the one that is misspelt.
  const always = { when: () => true };
  return z.looseObject(shape).superRefine((value, context) => {
    // A text has a key for each of its characters.
    if (!isJsonObject(value)) return;
    for (const name of Object.keys(value)) {
      if (known.includes(name) || !spelled.has(letters(name))) continue;
      context.addIssue({ code: 'custom', path: [name], message: unknownMember(name, known) });
    }
  }, always);
}

export function isWritten(schema: z.ZodObject): boolean {
  return schema.def.error === misspelt;
}

/** More are not told; to look for the name that was meant by each takes its time. */
const MAX_TOLD = 50;
const UNKNOWN = 'there are members that nobody knows:';

/** Words for members that nobody knows, a line for each; `wordsFor` takes them apart. */
export function misspelt(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code !== 'unrecognized_keys') return undefined;
  const known = issue.inst instanceof z.ZodObject ? Object.keys(issue.inst.shape) : [];
  return [UNKNOWN, ...issue.keys.slice(0, MAX_TOLD).map((name) => unknownMember(name, known))].join('\n');
}

/** @returns what is said of each of the members; undefined when their schema says something of all of them. */
export function wordsFor(issue: z.core.$ZodIssueUnrecognizedKeys): ReadonlyMap<string, string> | undefined {
  const [title, ...words] = issue.message.split('\n');
  return title === UNKNOWN ? new Map(words.map((word, index) => [issue.keys[index] ?? '', word])) : undefined;
}
