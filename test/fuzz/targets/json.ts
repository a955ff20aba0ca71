import { isDeepStrictEqual } from 'node:util';
import { AjvSchemaValidator } from '../../../adapters/system/schema-validator.ts';
import { parseDocumentText } from '../../../config/configuration-files/parse-document.ts';
import { fillPlaceholders, withoutValues } from '../../../config/configuration-files/placeholders.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { canonicalJson, isJsonObject, isMemberName, isText, parseJson } from '../../../domain/shared/json.ts';
import { describeJsonProblem } from '../../../domain/shared/json-fault.ts';
import { parseWebAddress } from '../../../domain/shared/web-address.ts';
import { ensure, isInstanceOfAny, neverExpected, type Target } from '../engine/target.ts';
import { JSON_WORDS, text } from './seeds.ts';

function json(input: Buffer): void {
  const documentText = text(input);
  const value = parseJson(documentText);
  const usual = parsed(documentText);
  if (value !== undefined) {
    ensure(usual !== undefined && isDeepStrictEqual(value, usual.value), 'JSON means what it means to everybody');
    ensure(isSound(value, 0), 'what is refused is refused wherever it stands');
    ensure(isDeepStrictEqual(parseJson(canonicalJson(value)), canonicalForm(value)), 'what is written is read as it was');
    parseJson(documentText, 32, 5);
    return;
  }
  ensure(!describeJsonProblem(documentText).startsWith('must be one complete'), 'what is refused is refused for one reason');
  if (usual !== undefined && JSON.stringify(usual.value) === documentText) {
    // There are no two readings of what JSON.stringify writes.
    ensure(!isSound(usual.value, 0), 'sound JSON is read');
  }
}

const canonicalForm = (value: unknown): unknown => JSON.parse(canonicalJson(value));

function parsed(documentText: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(documentText) };
  } catch {
    return undefined;
  }
}

/** Walks the parsed value, while the parser walks the text. */
function isSound(value: unknown, depth: number, parent?: string): boolean {
  if (typeof value === 'string') return isText(value);
  if (typeof value !== 'object' || value === null) return true;
  if (depth >= 32) return false;
  const properties = Array.isArray(value) ? value.map((property) => ['', property] as const) : Object.entries(value);
  const inner = (name: string) => (Array.isArray(value) ? undefined : name);
  return properties.every(([name, property]) => isMemberName(name, parent) && isText(name) && isSound(property, depth + 1, inner(name)));
}

/** The first character says which of both it is. */
function configuration(input: Buffer): void {
  const format = input[0] === 0x6a ? 'json' : 'yaml';
  const parsedDocument = parseDocumentText(input.subarray(1), format);
  if ('fault' in parsedDocument) {
    ensure(parsedDocument.fault.length < 300, 'a fault says where and quotes nothing');
    return;
  }
  ensure(isSound(parsedDocument.value, 0), 'text is text and names are names');
  const { value, used } = fillPlaceholders(parsedDocument.value, { SECRET: 'very-secret-value', NAME: 'x', EMPTY: '' }, []);
  const redacted = withoutValues(JSON.stringify(value), used);
  ensure(!used.has('SECRET') || !redacted.includes('very-secret-value'), 'no value is shown');
}

/** A placeholder of a configuration file. */
const makePlaceholder = (placeholderName: string) => `$\{${placeholderName}}`;

const validator = new AjvSchemaValidator();

/** A schema, and a document that is held against it. */
function schema(input: Buffer): void {
  const document = parseJson(text(input));
  if (!isJsonObject(document) || !isJsonObject(document['schema']) || !isJsonObject(document['document'])) return;
  validator.assertSize(document['schema']);
  validator.compile(document['schema'])(document['document']);
}

const schemas = [
  {
    type: 'object',
    properties: { a: { type: 'string', pattern: '^(a|b)+$', format: 'date' } },
    required: ['a'],
    additionalProperties: false,
  },
  {
    $defs: { node: { type: 'object', properties: { next: { $ref: '#/$defs/node' } } } },
    $ref: '#/$defs/node',
    unevaluatedProperties: false,
  },
  { properties: { list: { type: 'array', items: { enum: [1, 'x'] }, uniqueItems: true, minItems: 1, contains: { const: 1 } } } },
  {
    allOf: [{ minProperties: 1 }],
    anyOf: [{}, false],
    if: { properties: { a: { const: 1 } } },
    else: { not: {} },
    patternProperties: { '^\\p{L}': true },
  },
];

export const JSON_TARGETS: readonly Target[] = [
  {
    name: 'json',
    expected: neverExpected,
    seeds: ['{"a":[1,2.5,-3e2,"x\\u00e9\\n",null,true,{"b":{}}],"c":"\u{1f600}"}', '[9007199254740991,1e21,0.1]', '"x"', ' { "a" : 1 } '],
    dictionary: JSON_WORDS,
    decode: json,
  },
  {
    name: 'configuration-files',
    expected: neverExpected,
    seeds: [
      `j{"a":"${makePlaceholder('NAME')}","b":"${makePlaceholder('MISSING:default')} $${makePlaceholder('x')}","c":["${makePlaceholder('SECRET')}"]}`,
      `ya: &x [1, two, 2020-01-01]\nb: *x\nc: |\n  text ${makePlaceholder('NAME')}\nd: {e: "${makePlaceholder('SECRET')}", f: ~}\n? g\n: 0x10\n`,
      'y- a\n- b\n',
    ],
    dictionary: [
      ...JSON_WORDS,
      '${',
      makePlaceholder('NAME'),
      '${EMPTY:',
      '$${',
      '}',
      '&a',
      '*a',
      '<<: ',
      '!!binary ',
      '!!set',
      '- ',
      ': ',
      '? ',
      '|\n',
      '>-\n',
      '---\n',
      '...\n',
      '%YAML 1.1\n',
      '#',
      '\t',
      '.inf',
      '0o7',
    ],
    decode: configuration,
  },
  {
    name: 'json-schema',
    expected: isInstanceOfAny(Failure),
    seeds: schemas.map((schemaSeed) => JSON.stringify({ schema: schemaSeed, document: { a: 'ab', list: [1, 'x'], next: { next: {} } } })),
    dictionary: [
      ...[
        '$ref',
        '#',
        '#/$defs/node',
        '$id',
        '$anchor',
        '$dynamicRef',
        '$schema',
        'https://json-schema.org/draft/2020-12/schema',
        'format',
        'pattern',
      ],
      ...[
        'date-time',
        'regex',
        'uri',
        '(a+)+$',
        '[',
        '(?=a)',
        '\\1',
        'a{999}',
        '\\p{L}',
        'prefixItems',
        'dependentSchemas',
        'multipleOf',
        'maxLength',
      ],
    ],
    decode: schema,
  },
  {
    name: 'web-address',
    expected: neverExpected,
    seeds: ['https://a.example/path?x#y', 'http://[::1]:80/'],
    dictionary: ['https:', 'http:', '//', '@', ':', '%00', '\\', '#', 'xn--', '.', '\t'],
    decode: (input) => {
      const url = parseWebAddress(text(input));
      if (url !== undefined) ensure(url.username === '' && url.password === '', 'an address has no password');
    },
  },
];
