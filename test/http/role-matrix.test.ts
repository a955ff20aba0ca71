import { createSecretKey } from 'node:crypto';
import { expect } from 'chai';
import { deriveKey } from '../../adapters/crypto/cipher.ts';
import type { Route } from '../../adapters/http/route.ts';
import { LocalAccessTokens } from '../../adapters/identity/local-access-tokens.ts';
import { NodeRandom } from '../../adapters/system/random.ts';
import { collectRoutes } from '../../bootstrap/routes.ts';
import { ROLES, type Role } from '../../domain/clients/role.ts';
import { addClient, type Populated, populate } from '../support/populated.ts';
import { addressOf, freshId, nameOf, recipeOf, rolesOf } from '../support/requests.ts';
import { type Answer, ROOT, startTestService, type TestService } from '../support/test-service.ts';

const MASTER_SECRET = 'a master secret for the tests 0123456789';

/** Tokens as the service makes them, at another time or with claims that no client has. */
function forge(
  subject: string,
  clientId: string,
  roles: readonly Role[],
  at = new Date(),
  of?: string,
): string {
  const [, payload = ''] = of?.split('.') ?? [];
  const clientSince =
    payload === '' ? 0 : JSON.parse(Buffer.from(payload, 'base64url').toString()).client_since;
  const key = createSecretKey(deriveKey(MASTER_SECRET, 'vidimus/access-token'));
  const issuer = { key, issuer: 'platform-service', lifetimeSeconds: 3600 };
  const tokens = new LocalAccessTokens({ clock: { now: () => at }, random: new NodeRandom() }, issuer);
  return tokens.issue({ subject, clientId, roles, clientSince, secretRevision: 0 }).token;
}

const MANAGERS = ['issuance:manage', 'presentation:manage'];

/** Which roles open which addresses: the first line that fits a route names its roles. */
const DECIDED: readonly (readonly [RegExp, readonly string[]])[] = [
  [/^GET \/console\/identity$/, ROLES],
  [/ \/tenant/, ['tenants:manage']],
  [/ \/client\/:id\/(secret|rotate-secret)$/, ['clients:manage', 'tenants:manage']],
  [/ \/client/, ['clients:manage']],
  [/ \/settings$/, ['tenants:manage']],
  [/ \/audit-log(\/verification)?$/, ['clients:manage', 'tenants:manage']],
  [/^GET \/trust-list\b/, MANAGERS],
  [/ \/trust\//, MANAGERS],
  [/ \/trust-list\b/, ['issuance:manage']],
  [/ \/(certs|key-chain|key|session-config|cache|webhook-secret)\b/, MANAGERS],
  [/ \/issuer\/(offer|deferred)\b/, ['issuance:offer', 'issuance:manage']],
  [/ \/(issuer|status-lists|status-list-config)\b/, ['issuance:manage']],
  [/^GET \/verifier\/config/, ['presentation:manage', 'presentation:request']],
  [/ \/verifier\/config/, ['presentation:manage']],
  [/ \/verifier\/offer$/, ['presentation:request', 'presentation:manage']],
  [/ \/credentials\/revoke-by-subject$/, ['issuance:manage', 'issuance:offer']],
  [/ \/session\/:id\/statuses$/, ['issuance:manage', 'issuance:offer']],
  [/ \/session\/revoke$/, ['issuance:manage', 'issuance:offer']],
  [/ \/session\b/, [...MANAGERS, 'issuance:offer', 'presentation:request']],
  [/ \/registrar\b/, ['registrar:manage']],
];

/** What belongs to both sides takes both roles. */
const BOTH = [/^(PATCH|POST) \/webhook-secret/];

describe('Every route that needs a role', () => {
  let service: TestService;
  let world: Populated;
  let routes: readonly Route[];
  const tokens = new Map<Role, string>();
  const bad = new Map<string, string | undefined>();

  before(async () => {
    service = await startTestService({ MASTER_SECRET });
    routes = collectRoutes(service.service.container).filter((route) => rolesOf(route) !== undefined);
    world = await populate(service, 'acme');
    for (const role of ROLES) {
      const name = role.replace(':', '-');
      tokens.set(
        role,
        role === 'tenants:manage'
          ? await service.rootToken()
          : await addClient(world, `only-${name}`, { roles: [role] }),
      );
    }
    const deleted = await addClient(world, 'soon-gone', { roles: ['clients:manage', 'issuance:manage'] });
    await service.call('DELETE', '/client/soon-gone', { token: world.token });
    const anHourAgo = new Date(Date.now() - 3601_000);
    bad.set('no token', undefined);
    bad.set('garbage', 'garbage');
    bad.set('a signature of somebody else', `${world.token.slice(0, -4)}AAAA`);
    bad.set('an expired token', forge('acme', 'acme-admin', [...ROLES], anHourAgo, world.token));
    bad.set('an expired token of the root client', forge('root', 'root', [...ROLES], anHourAgo));
    bad.set('the token of a deleted client', deleted);
    bad.set(
      'a client of another tenant',
      forge('elsewhere', 'acme-admin', [...ROLES], new Date(), world.token),
    );
    bad.set('the root client inside a tenant', forge('acme', ROOT.clientId, [...ROLES]));
  });
  after(() => service.close());

  const call = async (route: Route, token: string | undefined, role?: Role): Promise<Answer> => {
    const { request, prepare } = recipeOf(route);
    const fresh = freshId();
    const allowed = role !== undefined && rolesOf(route)?.includes(role);
    const ids = allowed && prepare ? { ...world.ids, ...(await prepare(world, fresh, role)) } : world.ids;
    const { params, json } = request(ids, fresh, role);
    return service.call(route.method.toUpperCase(), addressOf(route, params), {
      ...(token === undefined ? {} : { token }),
      ...(json === undefined ? {} : { json }),
    });
  };

  const expectProblem = (answer: Answer, status: number, code: string, message: string) => {
    expect([answer.status, answer.body?.code], `${message}: ${answer.text}`).to.deep.equal([status, code]);
    expect(answer.headers.get('content-type')).to.equal('application/problem+json');
  };

  it('has a recipe, so none escapes these tests', () => {
    expect(routes.length).to.be.greaterThan(35);
    for (const route of routes) recipeOf(route);
  });

  it('names the roles that were decided', () => {
    for (const route of routes) {
      const [, roles] = DECIDED.find(([pattern]) => pattern.test(nameOf(route))) ?? [];
      expect(rolesOf(route), nameOf(route)).to.have.members([...(roles ?? [])]);
    }
  });

  for (const role of ROLES) {
    it(`serves a client that holds only ${role} exactly where the role is named`, async () => {
      for (const route of routes) {
        const answer = await call(route, tokens.get(role), role);
        const allowed = rolesOf(route)?.includes(role);
        const both = BOTH.some((pattern) => pattern.test(nameOf(route)));
        if (!allowed || both) expectProblem(answer, 403, 'forbidden', nameOf(route));
        else expect(answer.status, `${nameOf(route)}: ${answer.text}`).to.be.oneOf([200, 201, 204]);
      }
    });
  }

  it('answers 401 with a challenge to whoever has no good token', async () => {
    for (const [kind, token] of bad) {
      for (const route of routes) {
        const answer = await call(route, token);
        expectProblem(answer, 401, 'unauthenticated', `${kind} at ${nameOf(route)}`);
        expect(answer.headers.get('www-authenticate'), kind).to.match(/^Bearer .*error="invalid_token"/);
      }
    }
  });

  it('takes rights from the stored client and not from the token', async () => {
    const inflated = (role: Role) =>
      forge('acme', `only-${role.replace(':', '-')}`, [...ROLES], new Date(), tokens.get(role));
    // What any role opens is opened by the one that the client has.
    const closed = routes.filter((route) => ROLES.some((role) => rolesOf(route)?.includes(role) === false));
    expect(closed).to.have.length(routes.length - 1);
    for (const route of closed) {
      const role = rolesOf(route)?.includes('registrar:manage') ? 'issuance:offer' : 'registrar:manage';
      expectProblem(await call(route, inflated(role)), 403, 'forbidden', nameOf(route));
    }
  });

  it('takes the token from the query only at the event stream', async () => {
    const token = world.token;
    for (const route of routes.filter(({ method }) => method === 'get')) {
      const { params } = recipeOf(route).request(world.ids, freshId());
      const answer = await service.call('GET', `${addressOf(route, params)}?token=${token}`);
      const stream = typeof route.access === 'object' && 'stream' in route.access;
      expect(answer.status, nameOf(route)).to.equal(stream ? 200 : 401);
    }
  });

  it('knows presentation:offer as the older name of presentation:request', async () => {
    const token = await addClient(world, 'old-name', { roles: ['presentation:offer'] });
    const route = routes.find((candidate) => nameOf(candidate) === 'POST /verifier/offer');
    if (route === undefined) throw new Error('no such route');
    expect((await call(route, token)).status).to.equal(201);
    const client = await service.call('GET', '/client/old-name', { token: world.token });
    expect(client.body.roles).to.deep.equal(['presentation:request']);
  });
});
