import fc from 'fast-check';
import type { Json, JsonObject } from '../../../domain/shared/json.ts';

/** Names without a special meaning in either format. */
const aName = fc.stringMatching(/^[a-z]{1,3}[A-Za-z0-9_]{0,12}$/).filter((name) => !isSpecial(name));
const isSpecial = (name: string) =>
  /^(iss|nbf|exp|cnf|vct|status|aud|iat|portrait|signature_usual_mark|constructor|prototype)$/.test(name) ||
  /_date$|^biometric_/.test(name);
const aText = fc.string({ unit: 'grapheme', maxLength: 40 }).map((text) => text.normalize('NFC').replaceAll('\0', ''));
/** Exact integers (RFC 8259 section 6) and fractions, without negative zero, which JSON drops. */
const aNumber = fc.oneof(fc.maxSafeInteger(), fc.double({ noNaN: true, noDefaultInfinity: true, noInteger: true }));
const { value: aValue } = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.boolean(),
    fc.constant(null),
    aText,
    aNumber,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(aName, tie('value'), { maxKeys: 4, noNullPrototype: true }) as fc.Arbitrary<Json>,
  ),
}));
export const someClaims = fc.dictionary(aName, aValue, { minKeys: 1, maxKeys: 6, noNullPrototype: true });

/** Creates a frame that hides random claims at every level. */
export function aFrameFor(value: Json, choose: () => boolean): JsonObject {
  const isArray = Array.isArray(value);
  const entries = Object.entries(value as JsonObject);
  const frame: Record<string, Json> = { _sd_decoy: choose() ? 2 : 0 };
  frame['_sd'] = entries.filter(choose).map(([key]) => (isArray ? Number(key) : key));
  for (const [key, value] of entries) {
    if (typeof value === 'object' && value !== null && choose()) frame[key] = aFrameFor(value, choose);
  }
  return frame;
}
