import fc from 'fast-check';
import { z } from 'zod';
import type { Route } from '../../adapters/http/route.ts';
import type { RawRequest } from './raw-request.ts';

/**
 * Every Unicode character, as unit of `fc.string`. The unit `binary` is the same, but lists all of them before the first
 * text, which takes a second.
 */
export const unicodeCharacter = fc
  .oneof(fc.integer({ min: 0, max: 0xd7ff }), fc.integer({ min: 0xe000, max: 0x10ffff }))
  .map((codePoint) => String.fromCodePoint(codePoint));

/** Encoded path segments. Spaces and control characters cannot. */
export const segments = (valid: string): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 4, arbitrary: fc.constant(valid) },
    {
      weight: 3,
      arbitrary: fc.constantFrom(
        '%',
        '%0',
        '%00',
        `${valid}%00`,
        '%ff',
        '%c3%28',
        '%ed%a0%80',
        '%2e%2e',
        '%2F',
        '%2e%2e%2f%2e%2e%2fetc%2fpasswd',
        '..',
        '.',
        ';',
        ':id',
        '*',
        '__proto__',
        'constructor',
        "'--",
        '%F0%9F%98%80',
        'x'.repeat(200),
        'x'.repeat(5_000),
        '%41'.repeat(1_000),
        `${valid}?`,
        `${valid}#x`,
        `${valid}/`,
        `${valid}/extra`,
        '0',
        '-1',
      ),
    },
    { weight: 1, arbitrary: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }).map((text) => encodeURIComponent(text)) },
  );

/** Valid and invalid query strings. */
export function queries(route: Route): fc.Arbitrary<string> {
  const shape = (route.query as unknown as { shape?: object } | undefined)?.shape ?? {};
  const names = [...Object.keys(shape), 'limit', 'cursor', 'sort', 'status', 'since', 'token', '__proto__', 'a[b]'];
  const value = fc.constantFrom(
    '',
    '0',
    '-1',
    '1e9',
    'NaN',
    '%',
    '%00',
    '%ff',
    '%ed%a0%80',
    'active',
    '2020-01-01T00:00:00Z',
    '+275760-09-13T00:00:00.001Z',
    'MTIz',
    'MTc1MDAwMDAwMDAwMC5hAGI',
    'OTk5OTk5OTk5OTk5OTk5Lng',
    'x'.repeat(2_000),
    '[]',
    '{"$ne":null}',
  );
  const pair = fc.tuple(fc.constantFrom(...names), value).map(([name, text]) => `${name}=${text}`);
  return fc.oneof(
    { weight: 3, arbitrary: fc.constant('') },
    { weight: 2, arbitrary: pair },
    { weight: 1, arbitrary: pair.map((text) => `${text}&${text}`) },
    { weight: 1, arbitrary: fc.array(pair, { maxLength: 30 }).map((pairs) => pairs.join('&')) },
  );
}

const nested = (depth: number, open: string, close: string) => open.repeat(depth) + close.repeat(depth);

/** Unexpected values as JSON text, since not all of them are JavaScript values. */
const HOSTILE_JSON: readonly string[] = [
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

/** Any JSON, of an allowed size. */
export const hostileJson = (): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom(...HOSTILE_JSON) },
    { weight: 1, arbitrary: fc.json({ maxDepth: 3 }) },
    { weight: 1, arbitrary: fc.string({ unit: unicodeCharacter, maxLength: 30 }).map((text) => JSON.stringify(text)) },
  );

type JsonPath = readonly (string | number)[];

function pathsOf(value: unknown, currentPath: JsonPath = []): JsonPath[] {
  if (typeof value !== 'object' || value === null) return [currentPath];
  const entries = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  return [currentPath, ...entries.flatMap(([name, item]) => pathsOf(item, [...currentPath, name]))];
}

const MARKER = '\u0001hostile\u0001';

/** The document as JSON text with one value replaced. */
function replaceAt(document: unknown, jsonPath: JsonPath, text: string): string {
  const [name, ...remaining] = jsonPath;
  if (name === undefined) return text;
  const copy = structuredClone(document) as Record<string | number, unknown>;
  let parent = copy;
  let last = name;
  for (const next of remaining) {
    parent = parent[last] as typeof copy;
    last = next;
  }
  parent[last] = MARKER;
  return JSON.stringify(copy).replace(JSON.stringify(MARKER), () => text);
}

/** Property names of the schema of a body, including those without an example. */
function propertyNames(route: Route): string[] {
  if (route.body === undefined) return [];
  const schema = z.toJSONSchema(route.body, { io: 'input', unrepresentable: 'any' });
  return Object.keys(schema.properties ?? {});
}

const withProperty = (document: object, name: string, text: string) => replaceAt({ ...document, [name]: 0 }, [name], text);

/** Texts that are not exactly one JSON object, or that parsers read differently. */
const malformedBodies = (document: object): readonly string[] => {
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

/** Bodies derived from a valid document with at most one fault. */
export function bodies(route: Route, document: object): fc.Arbitrary<string | Buffer> {
  const paths = pathsOf(document);
  const properties = [...propertyNames(route), '__proto__', 'constructor', 'unknown'];
  const limit = route.bodyLimit ?? 64 * 1024;
  const filler = JSON.stringify({ ...document, filler: '' });
  return fc.oneof(
    { weight: 1, arbitrary: fc.constant(JSON.stringify(document)) },
    {
      weight: 6,
      arbitrary: fc.tuple(fc.constantFrom(...paths), hostileJson()).map(([jsonPath, text]) => replaceAt(document, jsonPath, text)),
    },
    {
      weight: 4,
      arbitrary: fc.tuple(fc.constantFrom(...properties), hostileJson()).map(([name, text]) => withProperty(document, name, text)),
    },
    { weight: 3, arbitrary: fc.constantFrom(...malformedBodies(document)) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes)) },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom(0, 1)
        .map((oversized) => filler.replace('"filler":""', `"filler":"${'x'.repeat(limit - filler.length + oversized)}"`)),
    },
  );
}

/** Form bodies derived from a valid one. */
export function forms(form: Readonly<Record<string, string>>): fc.Arbitrary<string | Buffer> {
  const valid = new URLSearchParams(form).toString();
  const names = [...Object.keys(form), 'unknown', '__proto__', 'vp_token', 'response', 'tx_code'];
  const text = fc.oneof(
    fc.constantFrom(...HOSTILE_JSON.map((json) => encodeURIComponent(json))),
    fc.constantFrom('%', '%00', '%ff', '%ud800', '+', '&', '=', 'a.b.c', 'a.b.c.d.e', 'x'.repeat(20_000)),
    fc.string({ unit: unicodeCharacter, maxLength: 30 }).map((value) => new URLSearchParams({ value }).toString().slice(6)),
  );
  const change = fc.tuple(fc.constantFrom(...names), text);
  return fc.oneof(
    { weight: 1, arbitrary: fc.constantFrom(valid, '', '&&&', '=', valid.toUpperCase()) },
    {
      weight: 6,
      arbitrary: change.map(([name, value]) => {
        const otherFields = Object.entries(form).filter(([fieldName]) => fieldName !== name);
        return `${new URLSearchParams(otherFields)}&${name}=${value}`;
      }),
    },
    { weight: 2, arbitrary: change.map(([name, value]) => `${valid}&${name}=${value}`) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes)) },
  );
}

/** The parts of a valid request. */
export type ValidRequest = {
  readonly params: Readonly<Record<string, string>>;
  readonly query?: string;
  readonly document?: object;
  readonly form?: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
};

type Headers = Readonly<Record<string, string | string[]>>;

const CONTENT_TYPES: readonly string[] = [
  '',
  'application/json',
  'application/json; charset=utf-16',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'text/plain',
  'application/problem+json',
  'nonsense',
  ';',
  'application/json, text/html',
];

const HEADERS: readonly Headers[] = [
  ...CONTENT_TYPES.map((type) => ({ 'content-type': type })),
  { 'content-encoding': 'gzip' },
  { 'x-request-id': 'x'.repeat(500) },
  { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'gopher' },
  { accept: 'text/html' },
  { accept: 'application/statuslist+cwt' },
  { authorization: 'Basic %%%' },
  { authorization: `Basic ${Buffer.from('\0:\0').toString('base64')}` },
  { authorization: `Basic ${Buffer.from('%00:%ff').toString('base64')}` },
  { authorization: 'DPoP a.b.c', dpop: ['a.b.c', 'd.e.f'] },
  { authorization: `Bearer ${'x'.repeat(12_000)}` },
  { authorization: `DPoP ${'eyJhbGciOiJub25lIn0.'.repeat(3)}` },
  { dpop: 'eyJhbGciOiJub25lIn0.e30.' },
  { dpop: '' },
  { 'if-match': '"x"', 'if-none-match': '*' },
  { 'last-event-id': '99999999999999' },
  { range: 'bytes=0-', 'x-http-method-override': 'DELETE' },
  { cookie: 'a=b; '.repeat(500) },
];

/**
 * Requests to a route with no, one or several faults. `isRouteKnown`: the path certainly belongs to the route.
 * @param validToken a token that may call the route; `others` are invalid in some way.
 */
export function requests(
  route: Route,
  valid: ValidRequest,
  validToken: string,
  otherTokens: readonly (string | undefined)[],
): fc.Arbitrary<{ raw: RawRequest; isRouteKnown: boolean }> {
  const { params, query = '', document, form, headers } = valid;
  const body = document === undefined ? (form === undefined ? undefined : new URLSearchParams(form).toString()) : JSON.stringify(document);
  const validRequest = {
    params: fc.constant(params),
    query: fc.constant(query),
    body: fc.constant<string | Buffer | undefined>(body),
    token: fc.constant<string | undefined>(validToken),
    more: fc.constant<Headers>({}),
  };
  const invalidRequest = {
    params: fc.record(Object.fromEntries(Object.entries(params).map(([name, value]) => [name, segments(value)]))),
    query: fc.oneof(
      queries(route),
      queries(route).map((extraPair) => `${query}&${extraPair}`),
    ),
    body:
      document !== undefined
        ? fc.option(bodies(route, document), { nil: undefined, freq: 30 })
        : form !== undefined
          ? fc.option(forms(form), { nil: undefined, freq: 30 })
          : fc.constantFrom('{}', 'x'.repeat(1_000)),
    token: fc.constantFrom(...otherTokens),
    more: fc.constantFrom(...HEADERS),
  };
  const type = document === undefined ? 'application/x-www-form-urlencoded' : 'application/json';
  const bodyFrequency = body === undefined ? 1 : 12;
  return fc
    .oneof(
      { weight: Object.keys(params).length === 0 ? 0 : 6, arbitrary: fc.record({ ...validRequest, params: invalidRequest.params }) },
      { weight: 3, arbitrary: fc.record({ ...validRequest, query: invalidRequest.query }) },
      { weight: bodyFrequency, arbitrary: fc.record({ ...validRequest, body: invalidRequest.body }) },
      { weight: 1, arbitrary: fc.record({ ...validRequest, token: invalidRequest.token }) },
      { weight: 4, arbitrary: fc.record({ ...validRequest, more: invalidRequest.more }) },
      { weight: 1, arbitrary: fc.record(invalidRequest) },
      { weight: 1, arbitrary: fc.record(validRequest) },
    )
    .map((changedRequest) => {
      const path = route.path.replaceAll(/:([A-Za-z]+)/g, (_, name: string) => changedRequest.params[name] ?? 'x');
      const link = path.includes('?') ? '&' : '?';
      return {
        isRouteKnown: Object.entries(params).every(([name, value]) => changedRequest.params[name] === value),
        raw: {
          method: route.method.toUpperCase(),
          path: changedRequest.query === '' ? path : `${path}${link}${changedRequest.query}`,
          headers: {
            ...(changedRequest.body === undefined ? {} : { 'content-type': type }),
            ...(changedRequest.token === undefined ? {} : { authorization: `Bearer ${changedRequest.token}` }),
            ...headers,
            ...changedRequest.more,
          },
          ...(changedRequest.body === undefined ? {} : { body: changedRequest.body }),
        },
      };
    });
}
