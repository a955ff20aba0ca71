import { expect } from 'chai';
import { startTestService, type TestService } from '../support/test-service.ts';

type Node = Readonly<Record<string, unknown>>;
type Fault = (node: Node, options: readonly Node[], path: string) => boolean;

function resolveIn(document: Node, node: unknown): Node {
  const reference = (node as Node | undefined)?.['$ref'];
  if (typeof reference !== 'string') return (node ?? {}) as Node;
  return reference
    .slice(2)
    .split('/')
    .reduce<unknown>((at, part) => (at as Node)[part.replaceAll('~1', '/')], document) as Node;
}

/** Paths of all places of the document that `isFault` is true of; `options` are those of a union. */
function placesIn(document: Node, isFault: Fault): string[] {
  const places: string[] = [];
  const walk = (node: unknown, path: string): void => {
    if (typeof node !== 'object' || node === null) return;
    const { anyOf, oneOf } = node as { anyOf?: unknown; oneOf?: unknown };
    const options = [anyOf, oneOf].find(Array.isArray) ?? [];
    const resolved = options.map((option: unknown) => resolveIn(document, option));
    if (isFault(node as Node, resolved, path)) places.push(path);
    for (const [name, child] of Object.entries(node)) {
      if (name !== 'example' && name !== 'examples') walk(child, `${path}/${name}`);
    }
  };
  walk(document, '');
  return places;
}

const isMap = ({ type, properties }: Node): boolean => type === 'object' && properties === undefined;
const MAP = { type: 'object', additionalProperties: true };

/** Constructs that a generator fails at, or writes code of that does not compile, each with a schema that has it. */
const CONSTRUCTS: readonly { title: string; isFault: Fault; violation: Node }[] = [
  {
    title: 'one type for each header parameter, so that openapi-python-client keeps the operation',
    isFault: ({ in: place, schema }) => place === 'header' && typeof (schema as Node)['type'] !== 'string',
    violation: { Header: { in: 'header', schema: { anyOf: [{ type: 'string' }, { type: 'integer' }] } } },
  },
  {
    title: 'no null as one of three types, which openapi-generator for Python cannot read',
    isFault: (_, options) => options.length > 2 && options.some(({ type }) => type === 'null'),
    violation: { Three: { anyOf: [{ type: 'string' }, { type: 'integer' }, { type: 'null' }] } },
  },
  {
    title: 'no union within a union, which openapi-generator for Python cannot read beside null',
    isFault: ({ anyOf }) =>
      Array.isArray(anyOf) && anyOf.some((option: Node) => option['anyOf'] && option['$ref'] === undefined),
    violation: { Nested: { anyOf: [{ anyOf: [{ type: 'string' }] }, { type: 'null' }] } },
  },
  {
    title: 'no conditions in allOf beside properties, where openapi-generator for Python cannot read null',
    isFault: ({ allOf, properties }) =>
      Array.isArray(allOf) && properties !== undefined && allOf.some((option: Node) => !option['$ref']),
    violation: { Conditional: { type: 'object', properties: {}, allOf: [{ not: { required: ['a'] } }] } },
  },
  {
    title: 'no map as one of several types, for which openapi-generator writes Java that does not compile',
    isFault: (_, options) => options.filter(({ type }) => type !== 'null').length > 1 && options.some(isMap),
    violation: { Mixed: { anyOf: [MAP, { type: 'array', items: MAP }] } },
  },
  {
    title:
      'no empty schema of further properties, for which openapi-generator writes Go that does not compile',
    isFault: ({ additionalProperties: further }) =>
      typeof further === 'object' && further !== null && Object.keys(further).length === 0,
    violation: { Empty: { type: 'object', additionalProperties: {} } },
  },
  {
    title: 'no property hasX beside x, which is a method in Go',
    isFault: ({ properties = {} }) =>
      Object.keys(properties as Node).some((name) =>
        Object.keys(properties as Node).some(
          (other) => name === `has${other.charAt(0).toUpperCase()}${other.slice(1)}`,
        ),
      ),
    violation: { Doubled: { type: 'object', properties: { hasPassword: {}, password: {} } } },
  },
  {
    title: 'no schema NewX beside a schema X, which is a constructor in Go',
    isFault: (node, _, path) =>
      path === '/components/schemas' && Object.keys(node).some((name) => node[`New${name}`] !== undefined),
    violation: { NewOther: { type: 'object' } },
  },
];

describe('the API document for client generators', () => {
  let service: TestService;
  let document: Node;

  before(async () => {
    service = await startTestService();
    document = (await service.call('GET', '/openapi.json')).body;
  });
  after(() => service.close());

  const resolve = (node: unknown): Node => resolveIn(document, node);
  const placesOf = (isFault: Fault): string[] => placesIn(document, isFault);

  for (const { title, isFault, violation } of CONSTRUCTS) {
    it(`has ${title}`, () => {
      expect(placesOf(isFault)).to.deep.equal([]);
    });

    it(`would be found to violate: ${title}`, () => {
      const schemas = { Other: { type: 'object', properties: {} } };
      const planted = { components: { schemas: { ...schemas, ...violation } } };
      expect(placesIn(planted, isFault)).to.not.be.empty;
    });
  }

  it('has tags for calls to backends that no operation of the service has, since generators write one file for each tag', () => {
    const tagsOf = (name: string) =>
      Object.values(document[name] as Record<string, Record<string, { readonly tags: string[] }>>)
        .flatMap((item) => Object.values(item))
        .flatMap(({ tags }) => tags);
    expect(tagsOf('paths')).to.not.include.members([...new Set(tagsOf('webhooks'))]);
  });

  it('has operation ids that are unique, camel case and end in no preposition', () => {
    const ids = Object.values(document['paths'] as Record<string, Record<string, { operationId: string }>>)
      .flatMap((item) => Object.values(item))
      .map(({ operationId }) => operationId);
    const isDescriptive = (id: string) =>
      /^[a-z]+([A-Z][a-z0-9]*)*$/.test(id) && !/(For|Of|By|With)$/.test(id);
    expect(isDescriptive('fetchPresentationRequestFor')).to.equal(false);
    expect(ids.filter((id) => !isDescriptive(id))).to.deep.equal([]);
    expect(new Set(ids).size).to.equal(ids.length);
  });

  it('lists the formats of a DCQL query and the grant types of each token endpoint', () => {
    const text = JSON.stringify(document);
    const { paths } = document as { paths: Record<string, { post: { requestBody: { content: Node } } }> };
    const grantTypes = (path: string) =>
      Object.values(paths[path]?.post.requestBody.content ?? {}).map(
        (content) =>
          (resolve((content as Node)['schema'])['properties'] as Record<string, Node>)['grant_type']?.[
            'enum'
          ],
      );
    const chained = ['authorization_code', 'refresh_token'];
    expect(grantTypes('/{tenant}/chained-as/token')).to.deep.equal([chained, chained]);
    expect(grantTypes('/{tenant}/token')[0]).to.include(
      'urn:ietf:params:oauth:grant-type:pre-authorized_code',
    );
    expect(text).to.include('A request that has both with different values is rejected with 400');
    const queries = placesOf(({ properties }) => {
      const { dcql_query: query } = (properties ?? {}) as Record<string, Node>;
      return (
        query !== undefined && !JSON.stringify(resolve(query)).includes('"enum":["dc+sd-jwt","mso_mdoc"]')
      );
    });
    expect(queries.filter((path) => path.includes('Input') || path.includes('Update'))).to.deep.equal([]);
  });
});
