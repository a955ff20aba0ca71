import { invalidInput } from '../../shared/failure.ts';
import { isJsonObject } from '../../shared/json.ts';
import { NEVER_DISCLOSABLE, RESERVED_NAMES } from './claim-names.ts';

/**
 * The selectively disclosable parts of a document. For an object `hidden` contains property names, for an array positions; `children`
 * describes nested values, by property name or decimal position.
 */
export type Frame = {
  readonly hidden: ReadonlySet<string | number>;
  /** Number of decoy digests (RFC 9901 section 4.2.5). */
  readonly decoys: number;
  /** Entries of `hidden` that are replaced by a decoy if absent (RFC 9901 section 10.4). */
  readonly padded?: ReadonlySet<string | number>;
  readonly children: ReadonlyMap<string, Frame>;
};

const MAX_FRAME_DEPTH = 24;
const MAX_DECOYS = 100;

/**
 * Parses a disclosure frame, for example
 * `{ "_sd": ["given_name"], "address": { "_sd": ["street"] }, "nationalities": { "_sd": [0, 1] } }`.
 * @param path of the frame in the caller's document.
 * @throws Failure `invalid_input` for a malformed frame, or one that hides a claim that must stay visible.
 */
export function parseDisclosureFrame(value: unknown, path = 'disclosureFrame', depth = 1): Frame {
  if (!isJsonObject(value)) throw invalidInput(path, 'A disclosure frame is an object.');
  if (depth > MAX_FRAME_DEPTH) throw invalidInput(path, `A frame may be nested at most ${MAX_FRAME_DEPTH} levels.`);

  const children = new Map<string, Frame>();
  for (const [name, child] of Object.entries(value)) {
    if (name === '_sd' || name === '_sd_decoy') continue;
    const childPath = `${path}.${name}`;
    if (RESERVED_NAMES.has(name)) throw invalidInput(childPath, `"${name}" is a reserved name.`);
    // SD-JWT VC section 2.2.2.3: this includes all properties of these claims.
    if (depth === 1 && NEVER_DISCLOSABLE.has(name)) throw invalidInput(childPath, `"${name}" cannot be selectively disclosable.`);
    children.set(name, parseDisclosureFrame(child, childPath, depth + 1));
  }
  return {
    hidden: parseHidden(value['_sd'], `${path}._sd`, depth === 1),
    decoys: parseDecoys(value['_sd_decoy'], `${path}._sd_decoy`),
    children,
  };
}

function parseHidden(value: unknown, path: string, isRoot: boolean): ReadonlySet<string | number> {
  const hidden = new Set<string | number>();
  if (value === undefined) return hidden;
  if (!Array.isArray(value)) throw invalidInput(path, '"_sd" is an array of names or positions.');

  for (const entry of value as readonly unknown[]) {
    const isPosition = typeof entry === 'number' && Number.isSafeInteger(entry) && entry >= 0;
    if (typeof entry !== 'string' && !isPosition) throw invalidInput(path, '"_sd" lists property names, or positions counted from 0.');
    if (RESERVED_NAMES.has(String(entry))) throw invalidInput(path, `"${entry}" is a reserved name.`);
    // SD-JWT VC section 2.2.2.3
    if (isRoot && NEVER_DISCLOSABLE.has(String(entry))) throw invalidInput(path, `"${entry}" cannot be selectively disclosable.`);
    if (hidden.has(entry as string | number)) throw invalidInput(path, `"${entry}" is listed twice.`);
    hidden.add(entry as string | number);
  }
  return hidden;
}

function parseDecoys(value: unknown, path: string): number {
  if (value === undefined) return 0;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_DECOYS) return value;
  throw invalidInput(path, `"_sd_decoy" is a number from 0 to ${MAX_DECOYS}.`);
}
