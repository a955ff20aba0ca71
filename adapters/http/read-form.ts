import { Failure } from '../../domain/shared/failure.ts';
import { isText } from '../../domain/shared/json.ts';

/** Forms come from callers who have shown nothing yet, so these are looked at before anything is taken apart. */
const MAX_PARAMETERS = 100;
/** Of a form. A megabyte of them takes forty milliseconds to read; presentations are base64url, which has none. */
const MAX_ESCAPES = 50_000;
const ESCAPE = /[+%]/g;

/**
 * The parameters of a form. A repeated one is an error, whether or not it is empty; an empty one counts as absent
 * (RFC 6749 section 3.2).
 * @throws Failure `invalid_request`.
 */
export function readForm(text: string): Record<string, string> {
  assertModest(text);
  const form: Record<string, string> = Object.create(null);
  const names = new Set<string>();
  for (const [name, value] of new URLSearchParams(text)) {
    // Of two readers one would see the empty one, and the other the one that says something.
    if (names.has(name)) throw new Failure('invalid_request', 'a parameter was sent more than once');
    names.add(name);
    // What stands in place of bytes that are not UTF-8.
    if (value.includes('\uFFFD')) throw new Failure('invalid_request', 'a parameter is not UTF-8');
    if (!isText(value)) throw new Failure('invalid_request', 'a parameter contains NUL');
    if (value !== '') form[name] = value;
  }
  return form;
}

function assertModest(text: string): void {
  if (holdsMore(text, /&/g, MAX_PARAMETERS - 1)) {
    throw new Failure('invalid_request', `a form has at most ${MAX_PARAMETERS} parameters`);
  }
  if (holdsMore(text, ESCAPE, MAX_ESCAPES)) {
    throw new Failure('invalid_request', `a form has at most ${MAX_ESCAPES} characters as escapes`);
  }
}

/** @param mark global, so that each test goes on behind the one before. */
function holdsMore(text: string, mark: RegExp, limit: number): boolean {
  mark.lastIndex = 0;
  let count = 0;
  while (count <= limit && mark.test(text)) count++;
  return count > limit;
}
