import fc from 'fast-check';
import type { Route } from '../../adapters/http/route.ts';
import { queries, segments } from './hostile-addresses.ts';
import { bodies, forms } from './hostile-bodies.ts';
import type { RawRequest } from './raw-request.ts';

/** A request as it should be. */
export type Valid = {
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
 * Requests to a route that are wrong in one respect, in several, or not at all. `plain` tells that the address still
 * belongs to the route for sure.
 * @param right a token that may call the route; `others` are wrong in some way.
 */
export function requests(
  route: Route,
  valid: Valid,
  right: string,
  others: readonly (string | undefined)[],
): fc.Arbitrary<{ raw: RawRequest; plain: boolean }> {
  const { params, query = '', document, form, headers } = valid;
  const body =
    document === undefined
      ? form === undefined
        ? undefined
        : new URLSearchParams(form).toString()
      : JSON.stringify(document);
  const good = {
    params: fc.constant(params),
    query: fc.constant(query),
    body: fc.constant<string | Buffer | undefined>(body),
    token: fc.constant<string | undefined>(right),
    more: fc.constant<Headers>({}),
  };
  const bad = {
    params: fc.record(
      Object.fromEntries(Object.entries(params).map(([name, value]) => [name, segments(value)])),
    ),
    query: fc.oneof(
      queries(route),
      queries(route).map((more) => `${query}&${more}`),
    ),
    body:
      document !== undefined
        ? fc.option(bodies(route, document), { nil: undefined, freq: 30 })
        : form !== undefined
          ? fc.option(forms(form), { nil: undefined, freq: 30 })
          : fc.constantFrom('{}', 'x'.repeat(1_000)),
    token: fc.constantFrom(...others),
    more: fc.constantFrom(...HEADERS),
  };
  const type = document === undefined ? 'application/x-www-form-urlencoded' : 'application/json';
  const bodyWeight = body === undefined ? 1 : 12;
  return fc
    .oneof(
      {
        weight: Object.keys(params).length === 0 ? 0 : 6,
        arbitrary: fc.record({ ...good, params: bad.params }),
      },
      { weight: 3, arbitrary: fc.record({ ...good, query: bad.query }) },
      { weight: bodyWeight, arbitrary: fc.record({ ...good, body: bad.body }) },
      { weight: 1, arbitrary: fc.record({ ...good, token: bad.token }) },
      { weight: 4, arbitrary: fc.record({ ...good, more: bad.more }) },
      { weight: 1, arbitrary: fc.record(bad) },
      { weight: 1, arbitrary: fc.record(good) },
    )
    .map((bent) => {
      const path = route.path.replaceAll(/:([A-Za-z]+)/g, (_, name: string) => bent.params[name] ?? 'x');
      const link = path.includes('?') ? '&' : '?';
      return {
        plain: Object.entries(params).every(([name, value]) => bent.params[name] === value),
        raw: {
          method: route.method.toUpperCase(),
          path: bent.query === '' ? path : `${path}${link}${bent.query}`,
          headers: {
            ...(bent.body === undefined ? {} : { 'content-type': type }),
            ...(bent.token === undefined ? {} : { authorization: `Bearer ${bent.token}` }),
            ...headers,
            ...bent.more,
          },
          ...(bent.body === undefined ? {} : { body: bent.body }),
        },
      };
    });
}
