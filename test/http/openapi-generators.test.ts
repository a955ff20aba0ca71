import { expect } from 'chai';
import { startTestService, type TestService } from '../support/test-service.ts';

type Node = Readonly<Record<string, unknown>>;

describe('the API document for client generators', () => {
  let service: TestService;
  let document: Node;

  before(async () => {
    service = await startTestService();
    document = (await service.call('GET', '/openapi.json')).body;
  });
  after(() => service.close());

  const resolve = (node: unknown): Node => {
    const reference = (node as Node | undefined)?.['$ref'];
    if (typeof reference !== 'string') return (node ?? {}) as Node;
    return reference
      .slice(2)
      .split('/')
      .reduce<unknown>((at, part) => (at as Node)[part.replaceAll('~1', '/')], document) as Node;
  };
  /** Paths of all places of the document that `isFault` is true of. */
  const placesOf = (isFault: (node: Node, options: readonly Node[]) => boolean): string[] => {
    const places: string[] = [];
    const walk = (node: unknown, path: string): void => {
      if (typeof node !== 'object' || node === null) return;
      const { anyOf } = node as { anyOf?: readonly unknown[] };
      if (isFault(node as Node, Array.isArray(anyOf) ? anyOf.map(resolve) : [])) places.push(path);
      for (const [name, member] of Object.entries(node)) walk(member, `${path}/${name}`);
    };
    walk(document, '');
    return places;
  };

  it('has one type for each header parameter, so that openapi-python-client keeps the operation', () => {
    const places = placesOf(
      (node) => node['in'] === 'header' && typeof resolve(node['schema'])['type'] !== 'string',
    );
    expect(places).to.deep.equal([]);
  });

  it('has no null as one of three types, which openapi-generator for Python cannot read', () => {
    const places = placesOf(
      (_, options) => options.length > 2 && options.some(({ type }) => type === 'null'),
    );
    expect(places).to.deep.equal([]);
  });

  it('has no object or array, for which openapi-generator writes Go that does not compile', () => {
    const places = placesOf((_, options) =>
      ['array', 'object'].every((wanted) => options.some(({ type }) => type === wanted)),
    );
    expect(places).to.deep.equal([]);
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
