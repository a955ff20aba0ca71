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
/** For each route on each database. */
const RUNS = Number(process.env['FUZZ_RUNS'] ?? 6);

/** Statuses of the answers on all databases together. */
const seenAnywhere = new Set<number>();

for (const [turn, kind] of httpDatabases().entries()) {
  // Each database gets other requests: what was refused before a store was asked says nothing new on the next one.
  const seed = SEED + turn * 1_000;
  describe(`arbitrary client requests on ${kind.name} (seed ${seed})`, () => {
    let database: TestDatabase | undefined;
    let service: TestService;
    let routes: readonly Route[];
    /** Everything in the victim may change; nothing in the witness may. */
    let victim: PopulatedTenant;
    let witness: PopulatedTenant;
    let rootToken: string;
    /** Of a third tenant, whose things may change as well. */
    let strangerToken: string;

    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      service = await startTestService({ DATABASE_URL: database.url });
      routes = collectRoutes(service.service.container);
      victim = await populate(service, 'victim');
      witness = await populate(service, 'witness');
      rootToken = await service.rootToken();
      strangerToken = (await createTenant(service, 'stranger')).token;
    });
    after(async () => {
      await service?.close();
      await database?.drop();
    });

    /** A request as it should be, to bend. Tenants that root may harm are made up. */
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
      const tokens = [strangerToken, undefined, 'garbage', `${right}x`, 'ÿ', 'a b c'];
      return requests(route, valid, right, tokens);
    };

    const undocumented = ({ method, path }: RawRequest, { status, headers, text }: RawAnswer) =>
      service.documentation.findProblem(method, path, {
        status,
        contentType: String(headers['content-type'] ?? ''),
        body: text.startsWith('{') || text.startsWith('[') ? JSON.parse(text) : undefined,
      });
    const secrets = () => [...[rootToken, victim.token, strangerToken, ROOT.secret], ...[WEBHOOK_KEY, UPSTREAM_SECRET, REGISTRAR_PASSWORD]];
    /** What removes things comes last. */
    const inOrder = () => routes.toSorted((one, two) => Number(one.method === 'delete') - Number(two.method === 'delete'));

    it('get no server error on any route and affect no other client', async () => {
      const before = await readAll(witness);
      const seen = new Map<number, number>();
      const faults = new Map<string, string>();
      for (const [index, route] of inOrder().entries()) {
        // Each request has one or two faults already, so there is nothing to shrink.
        for (const { raw, isRouteKnown } of fc.sample(requestsFor(route), { seed: seed + index, numRuns: RUNS })) {
          const answer = await send(service.address, raw);
          seen.set(answer.status, (seen.get(answer.status) ?? 0) + 1);
          const fault =
            findResponseProblem(answer, route, { isRouteKnown, secrets: secrets(), isForBrowser: raw.headers['accept'] === 'text/html' }) ??
            undocumented(raw, answer);
          const { headers, ...shown } = raw;
          const said = `${JSON.stringify(shown).slice(0, 600)} ${JSON.stringify(headers).slice(0, 200)}`;
          if (fault !== undefined) faults.set(`${nameOf(route)}: ${fault}`, said);
        }
      }
      const statuses = [...seen].toSorted(([one], [two]) => one - two);
      console.log(`      ${statuses.map(([status, count]) => `${count} × ${status}`).join(', ')}`);
      expect([...faults].map((fault) => fault.join('\n  ')).join('\n')).to.equal('');
      for (const status of seen.keys()) seenAnywhere.add(status);
      expect(await readAll(witness)).to.deep.equal(before);
      for (const [name, text] of await readAll(victim, [200, 404])) expect(text, name).not.to.equal('');
      expect((await service.call('GET', '/health')).status).to.equal(200);
    });

    /** Everything that the administrator of a tenant can read. */
    const readAll = async ({ ids, token }: PopulatedTenant, statuses = [200]): Promise<Map<string, string>> => {
      const read = new Map<string, string>();
      for (const route of routes) {
        if (route.method !== 'get' || route.path.endsWith('/secret')) continue;
        const roles = rolesOf(route);
        if (roles === undefined || roles.includes('tenants:manage')) continue;
        for (const role of ['issuance:manage', 'presentation:manage']) {
          const { params = {} } = recipeOf(route).request(ids, '', role);
          const path = route.path.replaceAll(/:([A-Za-z]+)/g, (_, name: string) => params[name] ?? '');
          const answer = await service.call('GET', path, { token });
          expect(answer.status, `${nameOf(route)}: ${answer.text}`).to.be.oneOf(statuses);
          // A period that ends now is another one each time.
          const text = route.path === '/session/rates' ? withoutPeriod(answer.text) : answer.text;
          read.set(`${nameOf(route)} ${role}`, text);
        }
      }
      return read;
    };
  });
}

describe('requests of the suites on all databases together', () => {
  it('cause every kind of answer', () => {
    expect([...seenAnywhere]).to.include.members([200, 201, 400, 401, 403, 404, 413, 415]);
  });
});

function withoutPeriod(rates: string): string {
  const { since, until, ...rest } = JSON.parse(rates);
  expect([since, until].every((time) => Number.isFinite(Date.parse(time)))).to.equal(true);
  return JSON.stringify(rest);
}
