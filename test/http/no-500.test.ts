import { expect } from 'chai';
import fc from 'fast-check';
import type { Route } from '../../adapters/http/route.ts';
import { collectRoutes } from '../../bootstrap/wiring/routes.ts';
import { findResponseProblem } from '../support/api-surface.ts';
import { httpDatabases, type TestDatabase } from '../support/databases.ts';
import { requests, type ValidRequest } from '../support/hostile-requests.ts';
import { type PopulatedTenant, populate, UPSTREAM_SECRET, WEBHOOK_KEY } from '../support/populated.ts';
import { type RawAnswer, type RawRequest, send } from '../support/raw-request.ts';
import { REGISTRAR_PASSWORD } from '../support/registrar.ts';
import { freshId, nameOf, recipeOf, rolesOf } from '../support/requests.ts';
import { createTenant, ROOT, startTestService, type TestService } from '../support/test-service.ts';
import { isTenantRoute, walletRecipeOf } from '../support/wallet-requests.ts';

const SEED = Number(process.env['FUZZ_SEED'] ?? 20_260_601);
/** Number of requests for each route on each database. */
const RUNS = Number(process.env['FUZZ_RUNS'] ?? 6);

/** Statuses of the responses on all databases together. */
const statusesOnAll = new Set<number>();

for (const [position, kind] of httpDatabases().entries()) {
  // Each database gets other requests: a request that is rejected before it reaches the store has the same result on each database.
  const seed = SEED + position * 1_000;
  describe(`arbitrary client requests on ${kind.name} (seed ${seed})`, () => {
    let database: TestDatabase | undefined;
    let service: TestService;
    let routes: readonly Route[];
    /** Resources of the victim may change; resources of the witness must not change. */
    let victim: PopulatedTenant;
    let witness: PopulatedTenant;
    let rootToken: string;
    /** Access token of a third tenant, whose resources may change as well. */
    let otherToken: string;

    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      service = await startTestService({ DATABASE_URL: database.url });
      routes = collectRoutes(service.service.container);
      victim = await populate(service, 'victim');
      witness = await populate(service, 'witness');
      rootToken = await service.rootToken();
      otherToken = (await createTenant(service, 'third')).token;
    });
    after(async () => {
      await service?.close();
      await database?.drop();
    });

    /** A valid request, to be mutated. Tenants that the root client may change do not exist. */
    const validFor = (route: Route): ValidRequest => {
      if (rolesOf(route) !== undefined) {
        const ids = { ...victim.ids, tenant: 'made-up' };
        const { params = {}, json } = recipeOf(route).request(ids, freshId());
        const document = json as object | undefined;
        return { params, headers: {}, ...(document === undefined ? {} : { document }) };
      }
      if (!isTenantRoute(route)) {
        const document = route.example as object | undefined;
        return { params: { file: 'swagger-ui.css' }, headers: {}, ...(document === undefined ? {} : { document }) };
      }
      const { path: address, headers = {}, json, form } = walletRecipeOf(route)(victim.wallet, victim.artefacts);
      const [path = '', query] = address.split('?', 2);
      const names = [...route.path.matchAll(/:([A-Za-z]+)/g)].map(([, name]) => name ?? '');
      const pattern = new RegExp(`^${route.path.replaceAll(/:[A-Za-z]+/g, '([^/]+)')}$`);
      const values = pattern.exec(path)?.slice(1) ?? [];
      return {
        params: Object.fromEntries(names.map((name, index) => [name, values[index] ?? ''])),
        headers,
        ...(query === undefined ? {} : { query }),
        ...(json === undefined ? {} : { document: json as object }),
        ...(form === undefined ? {} : { form }),
      };
    };

    const requestsFor = (route: Route): fc.Arbitrary<{ raw: RawRequest; isRouteKnown: boolean }> => {
      const valid = validFor(route);
      const right = rolesOf(route)?.includes('tenants:manage') ? rootToken : victim.token;
      const tokens = [otherToken, undefined, 'garbage', `${right}x`, 'ÿ', 'a b c'];
      return requests(route, valid, right, tokens);
    };

    const undocumented = ({ method, path }: RawRequest, { status, headers, text }: RawAnswer) =>
      service.documentation.findProblem(method, path, {
        status,
        contentType: String(headers['content-type'] ?? ''),
        body: text.startsWith('{') || text.startsWith('[') ? JSON.parse(text) : undefined,
      });
    const secrets = () => [...[rootToken, victim.token, otherToken, ROOT.secret], ...[WEBHOOK_KEY, UPSTREAM_SECRET, REGISTRAR_PASSWORD]];
    /** Routes that remove resources come last. */
    const inOrder = () => routes.toSorted((one, two) => Number(one.method === 'delete') - Number(two.method === 'delete'));

    it('get no server error on any route and affect no other client', async () => {
      const before = await readAll(witness);
      const statusCounts = new Map<number, number>();
      const faults = new Map<string, string>();
      for (const [index, route] of inOrder().entries()) {
        // Each request has only one or two faults, so it is not shrunk.
        for (const { raw, isRouteKnown } of fc.sample(requestsFor(route), { seed: seed + index, numRuns: RUNS })) {
          const answer = await send(service.address, raw);
          statusCounts.set(answer.status, (statusCounts.get(answer.status) ?? 0) + 1);
          const fault =
            findResponseProblem(answer, route, {
              isRouteKnown: isRouteKnown,
              secrets: secrets(),
              isForBrowser: raw.headers['accept'] === 'text/html',
            }) ?? undocumented(raw, answer);
          const { headers, ...shown } = raw;
          const requestText = `${JSON.stringify(shown).slice(0, 600)} ${JSON.stringify(headers).slice(0, 200)}`;
          if (fault !== undefined) faults.set(`${nameOf(route)}: ${fault}`, requestText);
        }
      }
      const statuses = [...statusCounts].toSorted(([one], [two]) => one - two);
      console.log(`      ${statuses.map(([status, count]) => `${count} × ${status}`).join(', ')}`);
      expect([...faults].map((fault) => fault.join('\n  ')).join('\n')).to.equal('');
      for (const status of statusCounts.keys()) statusesOnAll.add(status);
      expect(await readAll(witness)).to.deep.equal(before);
      for (const [name, text] of await readAll(victim, [200, 404])) expect(text, name).not.to.equal('');
      expect((await service.call('GET', '/health')).status).to.equal(200);
    });

    /** All resources that the administrator of a tenant can read. */
    const readAll = async ({ ids, token }: PopulatedTenant, statuses = [200]): Promise<Map<string, string>> => {
      const texts = new Map<string, string>();
      for (const route of routes) {
        if (route.method !== 'get' || route.path.endsWith('/secret')) continue;
        const roles = rolesOf(route);
        if (roles === undefined || roles.includes('tenants:manage')) continue;
        for (const role of ['issuance:manage', 'presentation:manage']) {
          const { params = {} } = recipeOf(route).request(ids, '', role);
          const path = route.path.replaceAll(/:([A-Za-z]+)/g, (_, name: string) => params[name] ?? '');
          const answer = await service.call('GET', path, { token });
          expect(answer.status, `${nameOf(route)}: ${answer.text}`).to.be.oneOf(statuses);
          // The end of the period differs in each response.
          const text = route.path === '/session/rates' ? withoutPeriod(answer.text) : answer.text;
          texts.set(`${nameOf(route)} ${role}`, text);
        }
      }
      return texts;
    };
  });
}

describe('requests of the suites on all databases together', () => {
  it('cause every kind of answer', () => {
    expect([...statusesOnAll]).to.include.members([200, 201, 400, 401, 403, 404, 413, 415]);
  });
});

function withoutPeriod(rates: string): string {
  const { since, until, ...rest } = JSON.parse(rates);
  expect([since, until].every((time) => Number.isFinite(Date.parse(time)))).to.equal(true);
  return JSON.stringify(rest);
}
