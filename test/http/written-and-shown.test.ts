import { expect } from 'chai';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

type Schema = {
  readonly $ref?: string;
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | object;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
};
type Media = { readonly content?: { readonly 'application/json'?: { readonly schema?: Schema } } };
type Operation = { readonly requestBody?: Media; readonly responses: Readonly<Record<string, Media>> };
type Paths = Readonly<Record<string, Readonly<Record<string, Operation>>>>;

/** What is written under one name and shown under another, or once only, with where it is found again. */
const ELSEWHERE: Readonly<Record<string, readonly string[]>> = {
  // Makes the tenant's first client, or changes its roles; the contract has it in requests alone.
  '/tenant': ['roles'],
  '/tenant/{id}': ['roles'],
  // Only its hash is kept.
  '/client': ['secret'],
  // `activeKey.alg`, and what the certificates say.
  '/key-chain': ['algorithm', 'subjectName', 'country', 'organization', 'rootKeyChainId', 'selfSigned'],
  '/key-chain/import': ['key', 'certificates', 'subjectName', 'country', 'organization', 'rootKeyChainId'],
  '/key': ['usages', 'algorithm', 'subjectName', 'country', 'organization'],
  '/certs': ['certUsageTypes', 'subjectName'],
  // `activeCertificate`
  '/key-chain/{id}': ['certificates'],
  // `usages`
  '/certs/{certId}': ['certUsageTypes'],
  // `entityConfig`
  '/trust-list': ['entities'],
  '/trust-list/{id}': ['entities'],
  // A login, and no resource.
  '/console/login': ['ticket'],
  // `hasClientSecret`, `hasPassword`
  '/registrar/config': ['clientSecret', 'password'],
};
/** What answers have beside the resource; who sends it back is not refused. */
const READ_ONLY = /(^|\.)warnings$|^clients\[\]\./;

describe('What is written of a resource', () => {
  let service: TestService;
  let paths: Paths;
  let schemas: Readonly<Record<string, Schema>>;

  before(async () => {
    service = await startTestService();
    const document = (await service.call('GET', '/openapi.json')).body;
    paths = document.paths;
    schemas = document.components.schemas;
  });
  after(() => service.close());

  const resolve = (schema: Schema): Schema =>
    schema.$ref === undefined ? schema : resolve(schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {});
  /** With everything that a value of it may be. */
  const alternatives = (schema: Schema): Schema[] => {
    const found = resolve(schema);
    const { anyOf = [], oneOf = [], allOf = [] } = found;
    return [found, ...[...anyOf, ...oneOf, ...allOf].flatMap(alternatives)];
  };
  /** Whether nothing is said of its members: what is kept as it came is shown as it came. */
  const isFree = ({ type, properties, additionalProperties, items, anyOf, oneOf, allOf }: Schema) => {
    if (additionalProperties !== undefined && additionalProperties !== false) return true;
    const isUnsaid = [properties, additionalProperties, items, anyOf, oneOf, allOf].every(
      (each) => each === undefined,
    );
    return isUnsaid && (type === undefined || type === 'object');
  };

  /** Paths of members of `written` that `shown` does not have. */
  function unshown(written: readonly Schema[], shown: readonly Schema[], at: string): string[] {
    const [bodies, views] = [written.flatMap(alternatives), shown.flatMap(alternatives)];
    if (views.some(isFree)) return [];
    const membersOf = (all: readonly Schema[], name: string) =>
      all.flatMap(({ properties }) => properties?.[name] ?? []);
    const names = new Set(bodies.flatMap(({ properties = {} }) => Object.keys(properties)));
    const here = [...names].flatMap((name) => {
      const path = at === '' ? name : `${at}.${name}`;
      const seen = membersOf(views, name);
      return seen.length === 0 ? [path] : unshown(membersOf(bodies, name), seen, path);
    });
    const itemsOf = (all: readonly Schema[]) => all.flatMap(({ items }) => items ?? []);
    const [entries, listed] = [itemsOf(bodies), itemsOf(views)];
    return entries.length === 0 || listed.length === 0
      ? here
      : [...here, ...unshown(entries, listed, `${at}[]`)];
  }
  const schemaOf = (media: Media | undefined) => media?.content?.['application/json']?.schema;
  /** What one of them looks like to who reads it. */
  function viewsOf(path: string): Schema[] {
    const base = path.replace(/\/import$/, '');
    const found = [
      base,
      ...Object.keys(paths).filter(
        (other) => /^\/\{\w+\}$/.test(other.slice(base.length)) && other.startsWith(base),
      ),
    ];
    return found.flatMap((place) => {
      const schema = schemaOf(paths[place]?.['get']?.responses['200']);
      if (schema === undefined) return [];
      const { items } = resolve(schema);
      return [items ?? schema];
    });
  }

  it('is shown, member by member', () => {
    const compared: string[] = [];
    for (const [path, operations] of Object.entries(paths)) {
      if (path.startsWith('/{tenant}')) continue;
      for (const method of ['post', 'put', 'patch']) {
        const body = schemaOf(operations[method]?.requestBody);
        const views = viewsOf(path);
        if (body === undefined || views.length === 0) continue;
        compared.push(`${method} ${path}`);
        const missing = unshown([body], views, '').filter((member) => !READ_ONLY.test(member));
        const known = ELSEWHERE[path] ?? [];
        expect(
          missing.filter((member) => !known.includes(member)),
          `${method} ${path}`,
        ).to.deep.equal([]);
      }
    }
    expect(compared.map((each) => each.split(' ')[1])).to.include.members([
      ...['/tenant', '/client', '/key-chain', '/key-chain/import', '/issuer/config', '/issuer/credentials'],
      ...['/verifier/config', '/registrar/config', '/status-lists', '/trust-list', '/session-config'],
      ...['/status-list-config', '/webhook-secret', '/certs', '/key'],
    ]);
  });

  it('of a presentation configuration holds what signers are judged by', async () => {
    const { token } = await createTenant(service, 'acme');
    const call = (method: string, path: string, json?: object) =>
      service.call(method, path, { token, ...(json && { json }) });
    const dcql_query = { credentials: [{ id: 'a', format: 'dc+sd-jwt', meta: { vct_values: ['urn:a'] } }] };
    const judged = { mdlProfile: 'none', certificateRevocation: 'if-available' };
    const made = await call('POST', '/verifier/config', { id: 'judged', dcql_query, ...judged });
    expect(made.body, made.text).to.include(judged);
    expect((await call('GET', '/verifier/config/judged')).body).to.include(judged);
    const reset = await call('PATCH', '/verifier/config/judged', {
      mdlProfile: null,
      certificateRevocation: null,
    });
    expect(reset.body, reset.text).to.include({ mdlProfile: null, certificateRevocation: null });
    expect((await call('GET', '/verifier/config')).body[0]).to.include({ mdlProfile: null });
  });
});
