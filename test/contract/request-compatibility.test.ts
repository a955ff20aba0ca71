import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import { exactApiDocument } from '../../tools/api-document.ts';
import {
  type AllowedNarrowing,
  type ApiDocument,
  allowedByChangelog,
  changelogLine,
  findRequestNarrowings,
  isAllowed,
} from '../support/request-narrowings.ts';

const RELEASES = new URL('../fixtures/releases/', import.meta.url);
const CHANGELOG = readFileSync(new URL('../../CHANGELOG.md', import.meta.url), 'utf8');
const releases = readdirSync(RELEASES, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

const readDocument = (release: string): ApiDocument =>
  JSON.parse(gunzipSync(readFileSync(new URL(`${release}/openapi.json.gz`, RELEASES))).toString());

/** Narrowings of a release that need no line in the changelog. */
function readAllowedNarrowings(release: string): readonly AllowedNarrowing[] {
  const readList = <T>(name: string): readonly T[] => {
    const file = new URL(`${release}/${name}`, RELEASES);
    return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : [];
  };
  type DescribedLater = { readonly operations: readonly string[]; readonly places: readonly string[] };
  type NarrowedProperty = { readonly operations: readonly string[]; readonly place: string };
  return [
    ...readList<DescribedLater>('described-later.json').flatMap(({ operations, places }) =>
      operations.flatMap((operation) => places.map((location) => ({ operation, location }))),
    ),
    ...readList<NarrowedProperty>('narrowed.json').flatMap(({ operations, place }) =>
      operations.map((operation) => ({ operation, location: place })),
    ),
  ];
}

describe('requests that an earlier release accepted', () => {
  let present: ApiDocument;

  before(async () => {
    present = JSON.parse(await exactApiDocument());
  });

  /** Narrowings that the changelog does not list. */
  const missingLines = (release: string, newerDocument: ApiDocument, changelog = CHANGELOG) => {
    const allowed = [...readAllowedNarrowings(release), ...allowedByChangelog(changelog, release)];
    const narrowings = findRequestNarrowings(readDocument(release), newerDocument);
    return narrowings.filter((narrowing) => !isAllowed(narrowing, allowed)).map(changelogLine);
  };

  for (const release of releases) {
    it(`are accepted as in ${release}, or the changelog lists the narrowing under Breaking`, function () {
      this.timeout(60_000);
      expect(missingLines(release, present)).to.deep.equal([]);
    });
  }

  const latest = releases.at(-1) ?? '';
  /** A copy of the current document in which the schema of tenants was changed. */
  const withChangedTenantSchema = (change: (schema: Record<string, unknown>) => void): ApiDocument => {
    const copy = structuredClone(present);
    const content = copy.paths['/tenant']?.['post']?.requestBody?.content['application/json'];
    const reference = String((content?.schema as { $ref?: string } | undefined)?.$ref);
    const name = reference.replace('#/components/schemas/', '');
    change(copy.components?.schemas?.[name] as Record<string, unknown>);
    return copy;
  };

  it('include a request with a property that the present document lacks', () => {
    const narrowedDocument = withChangedTenantSchema(({ properties }) => {
      delete (properties as Record<string, unknown>)['description'];
    });
    const lines = missingLines(latest, narrowedDocument);
    expect(lines.filter((line) => line.startsWith('- `POST /tenant` property `description`'))).to.have.length(1);
  });

  it('may be rejected once the changelog has a line with a reason under Breaking of a newer version', () => {
    const narrowedDocument = withChangedTenantSchema((schema) => {
      schema['required'] = ['id', 'name', 'description'];
    });
    const line = '- `POST /tenant` property `description`: tenants need a description';
    const missing = (changelog: string) => missingLines(latest, narrowedDocument, changelog).length;
    expect(missing(`# Changelog\n\n## Unreleased\n\n### Breaking\n\n${line}\n`)).to.equal(0);
    expect(missing(`## Unreleased\n\n### Changed\n\n${line}\n`), 'under another heading').to.equal(1);
    expect(missing(`## ${latest}\n\n### Breaking\n\n${line}\n`), 'under the release itself').to.equal(1);
    const withoutReason = '- `POST /tenant` property `description`: ';
    expect(missing(`## Unreleased\n\n### Breaking\n\n${withoutReason}\n`), 'without a reason').to.equal(1);
  });
});

describe('narrowing of requests', () => {
  const api = (schema: unknown, overrides: object = {}): ApiDocument =>
    ({
      paths: { '/x': { post: { requestBody: { content: { 'application/json': { schema } } }, ...overrides } } },
    }) as unknown as ApiDocument;
  const object = (properties: object, overrides: object = {}) => ({
    ...{ type: 'object', properties, required: [], additionalProperties: false },
    ...overrides,
  });
  const text = { type: 'string' };
  const findNarrowings = (before: unknown, after: unknown) =>
    findRequestNarrowings(api(before), api(after)).map(({ location, problem }) => `${location}: ${problem}`);

  const NARROWINGS: [string, object, object, RegExp][] = [
    ['a removed property', object({ a: text }), object({}), /^a: it is not accepted/],
    ['a property that became required', object({ a: text }), object({ a: text }, { required: ['a'] }), /^a: it is required/],
    ['additional properties', object({}, { additionalProperties: true }), object({}), /^body: other properties/],
    ['a type', object({ a: { type: ['string', 'null'] } }), object({ a: text }), /^a: .*type null/],
    ['a number that became an integer', object({ a: { type: 'number' } }), object({ a: { type: 'integer' } }), /^a: .*number/],
    ['a value of an enumeration', object({ a: { enum: ['x', 'y'] } }), object({ a: { enum: ['x'] } }), /^a: .*"y"/],
    ['a free text that became an enumeration', object({ a: text }), object({ a: { enum: ['x'] } }), /^a: only "x"/],
    ['a maximum', object({ a: { type: 'number', maximum: 9 } }), object({ a: { type: 'number', maximum: 8 } }), /^a: maximum is 8, was 9/],
    ['a new minimum length', object({ a: text }), object({ a: { type: 'string', minLength: 1 } }), /^a: minLength is 1/],
    [
      'a pattern',
      object({ a: { type: 'string', pattern: '^[ab]+$' } }),
      object({ a: { type: 'string', pattern: '^[a]+$' } }),
      /^a: pattern/,
    ],
    ['a format', object({ a: text }), object({ a: { type: 'string', format: 'uri' } }), /^a: format/],
    ['items of an array', { type: 'array', items: object({ a: text }) }, { type: 'array', items: object({}) }, /^\[\]\.a: it is not/],
    ['an alternative', { anyOf: [text, { type: 'number' }] }, text, /^body: .*number/],
    [
      'an alternative that a property selects',
      { oneOf: [object({ t: { const: 'a' } }), object({ t: { const: 'b' } })] },
      { oneOf: [object({ t: { const: 'a' } })] },
      /^t: .*"b"/,
    ],
    ['a rule of a part', object({ a: text }), { allOf: [object({ a: text }), { required: ['a'] }] }, /^a: it is required/],
  ];
  for (const [description, before, after, expected] of NARROWINGS) {
    it(`is reported for ${description}`, () => {
      const problems = findNarrowings(before, after);
      expect(
        problems.some((problem) => expected.test(problem)),
        problems.join('\n'),
      ).to.equal(true);
    });
    it(`is not reported for the opposite change of ${description}, or for none`, () => {
      expect(findNarrowings(before, before)).to.deep.equal([]);
      expect(findNarrowings(after, before)).to.deep.equal([]);
    });
  }

  it('is reported for operations, parameters and media types', () => {
    const before = api(text, { parameters: [{ name: 'q', in: 'query', schema: text }] });
    const narrowings = findRequestNarrowings(before, { paths: {} });
    expect(narrowings.map(changelogLine)).to.deep.equal(['- `POST /x`: the operation is gone']);
    const [parameter] = findRequestNarrowings(before, api(text));
    expect(parameter?.location).to.equal('parameter q');
    const required = api(text, { parameters: [{ name: 'r', in: 'query', required: true }] });
    expect(findRequestNarrowings(api(text), required).map(({ problem }) => problem)).to.deep.equal(['it is required now']);
    const form = JSON.parse(JSON.stringify(api(text)).replace('application/json', 'text/plain')) as ApiDocument;
    expect(findRequestNarrowings(api(text), form)[0]?.problem).to.include('application/json');
  });

  it('is computed in finite time for recursive schemas', () => {
    const tree = (leaf: object) => ({
      paths: { '/x': { post: { requestBody: { content: { j: { schema: { $ref: '#/components/schemas/T' } } } } } } },
      components: { schemas: { T: object({ leaf, next: { $ref: '#/components/schemas/T' } }) } },
    });
    const narrowings = findRequestNarrowings(tree(text) as never, tree({ type: 'string', maxLength: 1 }) as never);
    expect(narrowings.map(({ location }) => location)).to.deep.equal(['leaf']);
  });
});
