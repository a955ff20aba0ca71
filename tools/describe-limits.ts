import { DEFAULT_BODY_LIMIT, type Route } from '../adapters/http/route.ts';
import { MAX_ITEMS } from '../domain/formats/cbor/decode.ts';
import { MAX_CLAIMS_LENGTH, MAX_PRESENTATION_LENGTH } from '../domain/formats/credential-size.ts';
import { MAX_DISCLOSURE_MEMBERS, MAX_DISCLOSURES, MAX_ISSUER_MEMBERS } from '../domain/formats/sd-jwt/limits.ts';

type Schema = {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly [keyword: string]: unknown;
};
type Operation = {
  readonly requestBody?: unknown;
  readonly parameters?: readonly { readonly in: string; readonly name: string; readonly schema: Schema }[];
};
type Paths = Readonly<Record<string, Readonly<Record<string, Operation>>>>;
type Document = { readonly components?: { readonly schemas?: Readonly<Record<string, Schema>> } };

/** The keywords that limit a value, with the text for the table. */
const BOUNDS: readonly (readonly [string, string])[] = [
  ['minLength', 'at least % characters'],
  ['maxLength', 'at most % characters'],
  ['minItems', 'at least % entries'],
  ['maxItems', 'at most % entries'],
  ['maxProperties', 'at most % members'],
  ['minimum', 'at least %'],
  ['maximum', 'at most %'],
];
const KINDS = ['anyOf', 'oneOf', 'allOf'] as const;
/** These values are no limit, because they are the range of JSON numbers. */
const UNBOUNDED = new Set([Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]);

/** @returns every limit of the requests as Markdown, generated from the routes and from the API document. */
export function describeLimits(routes: readonly Route[], document: object): string {
  const calls = routes.flatMap(callLimits).sort();
  const { schemas = {} } = (document as Document).components ?? {};
  const values = Object.entries(schemas)
    .filter(([name]) => isSent(name, document))
    .flatMap(([name, schema]) => valueLimits(schema, name));
  return [
    '| Call | Body | Calls per minute |',
    '|---|---|---|',
    ...calls,
    '',
    '| Value | Limit |',
    '|---|---|',
    ...new Set([...queryLimits(document), ...values]),
    '',
    '| Credential or presentation | Limit |',
    '|---|---|',
    ...CREDENTIAL_LIMITS.map(([subject, limit]) => `| ${subject} | ${limit} |`),
  ].join('\n');
}

/** The limits of the formats, which hold for issued and for presented credentials. */
const CREDENTIAL_LIMITS: readonly (readonly [string, string])[] = [
  [
    'A presentation of one credential: an SD-JWT with key binding, or the base64url of a DeviceResponse',
    `at most ${MAX_PRESENTATION_LENGTH} characters`,
  ],
  ['The claims of an issued credential, as they are encoded in it', `at most ${MAX_CLAIMS_LENGTH} characters`],
  ['Disclosures of an SD-JWT', `at most ${MAX_DISCLOSURES}`],
  ['Members and entries of the issuer-signed payload of an SD-JWT', `at most ${MAX_ISSUER_MEMBERS}`],
  ['Members and entries of one disclosure', `at most ${MAX_DISCLOSURE_MEMBERS}`],
  ['CBOR items of an mdoc, and of each of its elements', `at most ${MAX_ITEMS}`],
];

function callLimits({ method, path, body, bodyLimit = DEFAULT_BODY_LIMIT, rateLimit }: Route): string[] {
  if (body === undefined && rateLimit === undefined) return [];
  const size = body === undefined ? '' : `${bodyLimit / 1024} KiB`;
  return [`| \`${method.toUpperCase()} ${path}\` | ${size} | ${rateOf(rateLimit)} |`];
}

function rateOf(limit: Route['rateLimit']): string {
  if (limit === undefined) return '';
  const countedBy = [
    ...(limit.perAddress === true ? ['address'] : []),
    ...(limit.perClient === undefined || limit.perClient === false ? [] : ['client']),
  ];
  return `\`RATE_LIMIT_${limit.group.toUpperCase()}\` per ${countedBy.join(' and per ')}`;
}

/** @returns true when a schema is part of a request, directly or within another schema. */
function isSent(name: string, document: object): boolean {
  const bodies = operationsOf(document).flatMap(({ operation: { requestBody } }) => requestBody ?? []);
  const { schemas = {} } = (document as Document).components ?? {};
  const visited = new Set<string>();
  const follow = (value: unknown): boolean =>
    referencesOf(value).some((reference) => {
      if (reference === name) return true;
      if (visited.has(reference)) return false;
      visited.add(reference);
      return follow(schemas[reference]);
    });
  return follow(bodies);
}

function operationsOf(document: object) {
  const { paths = {} } = document as { readonly paths?: Paths };
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ call: `${method.toUpperCase()} ${path}`, operation })),
  );
}

function queryLimits(document: object): string[] {
  return operationsOf(document).flatMap(({ call, operation }) =>
    (operation.parameters ?? [])
      .filter((parameter) => parameter.in === 'query')
      .flatMap(({ name, schema }) => valueLimits(schema, `${call}?${name}`)),
  );
}

function referencesOf(value: unknown): string[] {
  const names = JSON.stringify(value ?? null).matchAll(/"#\/components\/schemas\/([^"]+)"/g);
  return [...names].map(([, name = '']) => name);
}

function valueLimits(schema: Schema, place: string): string[] {
  const bounds = BOUNDS.flatMap(([keyword, words]) => {
    const bound = schema[keyword];
    if (typeof bound !== 'number' || UNBOUNDED.has(bound)) return [];
    // The rule that a value must not be empty is not listed as a limit.
    if (keyword.startsWith('min') && keyword !== 'minimum' && bound <= 1) return [];
    return [words.replace('%', String(bound))];
  });
  const ownRows = bounds.length === 0 ? [] : [`| \`${place}\` | ${bounds.join(', ')} |`];
  const { properties = {}, additionalProperties, items } = schema;
  return [
    ...ownRows,
    ...Object.entries(properties).flatMap(([name, member]) => valueLimits(member, `${place}.${name}`)),
    ...(typeof additionalProperties === 'object' ? valueLimits(additionalProperties, `${place}.*`) : []),
    ...(items === undefined ? [] : valueLimits(items, `${place}[]`)),
    ...KINDS.flatMap((kind) => {
      const alternatives = schema[kind];
      return Array.isArray(alternatives) ? alternatives.flatMap((alternative) => valueLimits(alternative, place)) : [];
    }),
  ];
}
