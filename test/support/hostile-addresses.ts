import fc from 'fast-check';
import type { Route } from '../../adapters/http/route.ts';

/** Path segments as they go over the wire. Spaces and control characters cannot. */
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
    {
      weight: 1,
      arbitrary: fc
        .string({ unit: 'grapheme', minLength: 1, maxLength: 12 })
        .map((text) => encodeURIComponent(text)),
    },
  );

/** Query strings with and without sense. */
export function queries(route: Route): fc.Arbitrary<string> {
  const shape = (route.query as unknown as { shape?: object } | undefined)?.shape ?? {};
  const names = [
    ...Object.keys(shape),
    'limit',
    'cursor',
    'sort',
    'status',
    'since',
    'token',
    '__proto__',
    'a[b]',
  ];
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
