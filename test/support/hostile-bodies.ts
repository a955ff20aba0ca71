import fc from 'fast-check';
import { z } from 'zod';
import type { Route } from '../../adapters/http/route.ts';
import { anyCharacter } from './any-character.ts';

const nested = (depth: number, open: string, close: string) => open.repeat(depth) + close.repeat(depth);

/** What stands where something else belongs, as JSON text, since not all of it is a JavaScript value. */
const HOSTILE: readonly string[] = [
  'null',
  'true',
  '0',
  '-1',
  '1.5',
  '1e400',
  '-0',
  '9007199254740993',
  '2147483648',
  '""',
  '" "',
  '"NaN"',
  '[]',
  '{}',
  '[null]',
  '[[[]]]',
  '{"":""}',
  '{"length":-1}',
  '{"toString":1,"hasOwnProperty":null}',
  '{"__proto__":{"admin":true}}',
  '{"constructor":{"prototype":{}}}',
  '"\\u0000"',
  '"a\\u0000b"',
  '"\\ud800"',
  '"\\udc00\\ud800"',
  '"\\uffff\\u202e"',
  '"ÀéØ😀"',
  '"../../etc/passwd"',
  '"%00%ff"',
  '"<script>alert(1)</script>"',
  '"\' or 1=1; --"',
  '"a\\r\\nSet-Cookie: a=b"',
  '"1970-01-01T00:00:00Z"',
  '"http://[::1]:0/"',
  '"https://"',
  JSON.stringify('x'.repeat(3_000)),
  JSON.stringify('(a+)+'.repeat(200)),
  `[${Array.from({ length: 2_000 }, () => '0').join()}]`,
  nested(20, '[', ']'),
  nested(1_000, '[', ']'),
  `${'{"a":'.repeat(25)}1${'}'.repeat(25)}`,
];

/** Anything, of a size that is no fault in itself. */
export const hostileJson = (): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom(...HOSTILE) },
    { weight: 1, arbitrary: fc.json({ maxDepth: 3 }) },
    {
      weight: 1,
      arbitrary: fc.string({ unit: anyCharacter, maxLength: 30 }).map((text) => JSON.stringify(text)),
    },
  );

type Place = readonly (string | number)[];

function placesOf(value: unknown, here: Place = []): Place[] {
  if (typeof value !== 'object' || value === null) return [here];
  const entries = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  return [here, ...entries.flatMap(([name, member]) => placesOf(member, [...here, name]))];
}

const MARK = '\u0001hostile\u0001';

/** The document as JSON text with something else at one place. */
function replaced(document: unknown, place: Place, text: string): string {
  const [name, ...rest] = place;
  if (name === undefined) return text;
  const copy = structuredClone(document) as Record<string | number, unknown>;
  let at = copy;
  let last = name;
  for (const next of rest) {
    at = at[last] as typeof copy;
    last = next;
  }
  at[last] = MARK;
  return JSON.stringify(copy).replace(JSON.stringify(MARK), () => text);
}

/** Names of members that the schema of a body knows, so that those without an example are tried too. */
function membersOf(route: Route): string[] {
  if (route.body === undefined) return [];
  const schema = z.toJSONSchema(route.body, { io: 'input', unrepresentable: 'any' });
  return Object.keys(schema.properties ?? {});
}

const withMember = (document: object, name: string, text: string) =>
  replaced({ ...document, [name]: 0 }, [name], text);

/** Texts that are not one JSON object, or not one that everybody reads alike. */
const brokenTexts = (document: object): readonly string[] => {
  const text = JSON.stringify(document);
  const [first] = Object.keys(document);
  return [
    '',
    ' ',
    'null',
    '[]',
    '"text"',
    '{',
    `${text}}`,
    `${text}${text}`,
    text.slice(0, -1),
    text.replaceAll('"', "'"),
    `{${JSON.stringify(first ?? 'a')}:1,${text.slice(1)}`,
    `{"__proto__":{"roles":[]},${text.slice(1)}`,
    `\ufeff${text}`,
    '{"a":NaN}',
    '{"a":undefined}',
    '{"a":01}',
    nested(1_000, '{"a":', '}').replace('{"a":}', '{"a":1}'),
    nested(1_000, '[', ']'),
    '\u0000'.repeat(10),
    '<?xml version="1.0"?><a/>',
  ];
};

/** Bodies around a valid document: one fault, or none. */
export function bodies(route: Route, document: object): fc.Arbitrary<string | Buffer> {
  const places = placesOf(document);
  const members = [...membersOf(route), '__proto__', 'constructor', 'unknown'];
  const limit = route.bodyLimit ?? 64 * 1024;
  const filler = JSON.stringify({ ...document, filler: '' });
  return fc.oneof(
    { weight: 1, arbitrary: fc.constant(JSON.stringify(document)) },
    {
      weight: 6,
      arbitrary: fc
        .tuple(fc.constantFrom(...places), hostileJson())
        .map(([place, text]) => replaced(document, place, text)),
    },
    {
      weight: 4,
      arbitrary: fc
        .tuple(fc.constantFrom(...members), hostileJson())
        .map(([name, text]) => withMember(document, name, text)),
    },
    { weight: 3, arbitrary: fc.constantFrom(...brokenTexts(document)) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes)) },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom(0, 1)
        .map((over) =>
          filler.replace('"filler":""', `"filler":"${'x'.repeat(limit - filler.length + over)}"`),
        ),
    },
  );
}

/** Form bodies around a valid one. */
export function forms(form: Readonly<Record<string, string>>): fc.Arbitrary<string | Buffer> {
  const valid = new URLSearchParams(form).toString();
  const names = [...Object.keys(form), 'unknown', '__proto__', 'vp_token', 'response', 'tx_code'];
  const text = fc.oneof(
    fc.constantFrom(...HOSTILE.map((json) => encodeURIComponent(json))),
    fc.constantFrom('%', '%00', '%ff', '%ud800', '+', '&', '=', 'a.b.c', 'a.b.c.d.e', 'x'.repeat(20_000)),
    fc
      .string({ unit: anyCharacter, maxLength: 30 })
      .map((value) => new URLSearchParams({ value }).toString().slice(6)),
  );
  const change = fc.tuple(fc.constantFrom(...names), text);
  return fc.oneof(
    { weight: 1, arbitrary: fc.constantFrom(valid, '', '&&&', '=', valid.toUpperCase()) },
    {
      weight: 6,
      arbitrary: change.map(([name, value]) => {
        const others = Object.entries(form).filter(([other]) => other !== name);
        return `${new URLSearchParams(others)}&${name}=${value}`;
      }),
    },
    { weight: 2, arbitrary: change.map(([name, value]) => `${valid}&${name}=${value}`) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes)) },
  );
}
