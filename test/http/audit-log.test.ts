import { expect } from 'chai';
import type { Route } from '../../adapters/http/route.ts';
import { AUDIT_LOG } from '../../adapters/persistence/audit-keys.ts';
import { VerifyAuditLog } from '../../application/audit/verify-audit-log.ts';
import { Cipher } from '../../application/ports/cipher.ts';
import { Store } from '../../application/ports/store.ts';
import { collectRoutes } from '../../bootstrap/wiring/routes.ts';
import { databases, httpDatabases, rawSql, type TestDatabase } from '../support/databases.ts';
import {
  addClient,
  claimsWebhookOffer,
  createResource,
  type PopulatedTenant,
  populate,
  type TenantIds,
  UPSTREAM_SECRET,
  WEBHOOK_KEY,
} from '../support/populated.ts';
import { sharedRegistrar } from '../support/registrar.ts';
import { addressOf, freshId, nameOf, recipeOf, rolesOf } from '../support/requests.ts';
import { createRevocableIssuer, issueBatch } from '../support/revocable-cards.ts';
import { createTenant, ROOT, startTestService, type TestService } from '../support/test-service.ts';

/** What each call that changes something leaves in the log of the tenant: `action kind`. */
const ENTRIES: Readonly<Record<string, readonly string[]>> = {
  'PATCH /tenant/:id': ['changed tenant'],
  'POST /client': ['created client'],
  'PATCH /client/:id': ['changed client'],
  'DELETE /client/:id': ['removed client'],
  'GET /client/:id/secret': ['fetched client'],
  'POST /client/:id/rotate-secret': ['rotated client'],
  'POST /key-chain': ['created key-chain'],
  'POST /key-chain/import': ['created key-chain'],
  'PATCH /key-chain/:id': ['changed key-chain'],
  'DELETE /key-chain/:id': ['removed key-chain'],
  'POST /key-chain/:id/rotate': ['rotated key-chain'],
  'POST /key-chain/:id/csr': ['requested key-chain'],
  'POST /certs/:certId/csr': ['requested key-chain'],
  'POST /key': ['created key-chain'],
  'DELETE /key/:id': ['removed key-chain'],
  'POST /certs': ['created key-chain'],
  'PATCH /certs/:certId': ['changed key-chain'],
  'DELETE /certs/:certId': ['removed key-chain'],
  'PUT /session-config': ['changed tenant'],
  'DELETE /session-config': ['changed tenant'],
  'PUT /status-list-config': ['changed tenant'],
  'POST /status-lists': ['created status-list'],
  'PATCH /status-lists/:listId': ['changed status-list'],
  'DELETE /status-lists/:listId': ['removed status-list'],
  'POST /issuer/config': ['changed issuance-configuration'],
  'POST /issuer/credentials': ['created credential-configuration'],
  'PATCH /issuer/credentials/:id': ['changed credential-configuration'],
  'DELETE /issuer/credentials/:id': ['removed credential-configuration'],
  'POST /issuer/deferred/:transactionId/complete': ['completed deferred-transaction'],
  'POST /issuer/deferred/:transactionId/fail': ['failed deferred-transaction'],
  'POST /verifier/config': ['created presentation-configuration'],
  'PATCH /verifier/config/:id': ['changed presentation-configuration'],
  'DELETE /verifier/config/:id': ['removed presentation-configuration'],
  'POST /trust-list': ['created trust-list'],
  'PUT /trust-list/:id': ['changed trust-list'],
  'PATCH /trust-list/:id': ['changed trust-list'],
  'DELETE /trust-list/:id': ['removed trust-list'],
  'POST /trust/lists/:id/confirm-signer': ['changed issuance-configuration', 'confirmed followed-trust-list'],
  'DELETE /session/:id': ['removed session'],
  'POST /session/:id/show': ['shown session'],
  'POST /session/:id/cancel': ['cancelled session'],
  'POST /session/:id/deliveries/:deliveryId/retry': ['retried session'],
  'POST /session/revoke': ['revoked session'],
  'POST /credentials/revoke-by-subject': ['revoked session'],
  'DELETE /cache': ['cleared cache'],
  'DELETE /cache/trust-list': ['cleared cache'],
  'DELETE /cache/status-list': ['cleared cache'],
  'POST /registrar/config': ['changed registrar-configuration'],
  'PATCH /registrar/config': ['changed registrar-configuration'],
  'DELETE /registrar/config': ['removed registrar-configuration'],
  'PATCH /webhook-secret': ['changed webhook-secret'],
  'POST /webhook-secret/rotate': ['rotated webhook-secret'],
  'POST /registrar/registration-certificate': ['requested registrar-configuration'],
  'POST /registrar/access-certificate': ['changed key-chain'],
};

/** Calls that change no configuration: traffic of the backends, and what is tried. */
const UNLOGGED: ReadonlySet<string> = new Set([
  'POST /issuer/offer',
  'POST /verifier/offer',
  'POST /verifier/config/:id/try',
  // Those of the service have tests of their own below.
  'POST /tenant',
  'DELETE /tenant/:id',
]);

type Entry = Readonly<Record<string, unknown>> & {
  readonly sequence: number;
  readonly action: string;
  readonly kind: string;
  readonly target: string;
  readonly actor: string;
};
const brief = ({ action, kind }: Entry) => `${action} ${kind}`;

for (const kind of httpDatabases()) {
  describe(`The audit log over HTTP on ${kind.name}`, () => {
    let database: TestDatabase | undefined;
    let service: TestService;
    let world: PopulatedTenant;
    let root: string;
    let routes: readonly Route[];

    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      service = await startTestService({ DATABASE_URL: database.url });
      root = await service.rootToken();
      routes = collectRoutes(service.service.container).filter((route) => rolesOf(route) !== undefined);
      world = await populate(service, 'acme');
    });
    after(async () => {
      await service?.close();
      await database?.drop();
    });

    const read = async (token = world.token, query = ''): Promise<Entry[]> => {
      const answer = await service.call('GET', `/audit-log?limit=500${query}`, { token });
      expect(answer.status, answer.text).to.equal(200);
      return answer.body;
    };
    const newest = async (token?: string, query?: string) => (await read(token, query))[0]?.sequence ?? 0;
    const since = async (sequence: number) => (await read()).filter((entry) => entry.sequence > sequence).reverse();

    const call = async (route: Route, ids: TenantIds, fresh: string, role: string) => {
      const { params, json } = recipeOf(route).request(ids, fresh, role);
      const token = role === 'tenants:manage' ? root : world.token;
      const answer = await service.call(route.method.toUpperCase(), addressOf(route, params), {
        token,
        ...(json === undefined ? {} : { json }),
      });
      expect(answer.status, `${nameOf(route)}: ${answer.text}`).to.be.oneOf([200, 201, 204]);
      return answer;
    };

    it('has exactly the entries that each changing route is expected to write', async () => {
      for (const route of routes) {
        const name = nameOf(route);
        if (name.endsWith('/events') || ['POST /tenant', 'DELETE /tenant/:id'].includes(name)) continue;
        if (route.method !== 'get') {
          expect(UNLOGGED.has(name) || ENTRIES[name] !== undefined, `${name} is not decided on`).to.equal(true);
        }
        const role = rolesOf(route)?.includes('issuance:manage') ? 'issuance:manage' : (rolesOf(route)?.[0] ?? '');
        const fresh = freshId();
        const { prepare } = recipeOf(route);
        const ids = prepare ? { ...world.ids, ...(await prepare(world, fresh, role)) } : world.ids;
        const before = await newest();
        const answer = await call(route, ids, fresh, role);
        const left = await since(before);
        expect(left.map(brief), name).to.deep.equal(ENTRIES[name] ?? []);
        for (const entry of left) {
          expect(entry.actor, name).to.equal(role === 'tenants:manage' ? ROOT.clientId : 'acme-admin');
          expect(entry['requestId'], name).to.equal(answer.headers.get('x-request-id'));
        }
      }
    });

    it('has no entry for rejected requests', async () => {
      const before = await newest();
      const refused = [
        ['POST', '/client', { clientId: world.ids.client, roles: ['clients:manage'] }, 409],
        ['POST', '/key-chain', { id: world.ids.keyChain, usageType: 'signing' }, 409],
        ['PATCH', '/issuer/credentials/nothing', { description: 'Changed' }, 404],
        ['DELETE', '/session/nothing', undefined, 404],
        ['POST', '/session/revoke', { sessionId: 'nothing', status: 1 }, 404],
        ['POST', `/issuer/deferred/nothing/fail`, { errorMessage: 'no' }, 404],
      ] as const;
      for (const [method, path, json, status] of refused) {
        const answer = await service.call(method, path, { token: world.token, ...(json && { json }) });
        expect(answer.status, `${path}: ${answer.text}`).to.equal(status);
      }
      expect(await newest()).to.equal(before);
    });

    it('records changes of tenants in the chain of the service, also for removed tenants', async () => {
      const before = await newest(root);
      const { token } = await createTenant(service, 'shortlived');
      const own = await read(token);
      expect(own.map(brief).reverse()).to.deep.equal([
        'created tenant',
        ...Array.from({ length: 4 }, () => 'created key-chain'),
        'created client',
        'fetched client',
      ]);
      await service.call('PATCH', '/tenant/shortlived', { token: root, json: { status: 'suspended' } });
      const seen = await read(root, '&tenant=shortlived');
      expect(seen.slice(1).map(({ sequence }) => sequence)).to.deep.equal(own.map(({ sequence }) => sequence));
      await service.call('DELETE', '/tenant/shortlived', { token: root });
      const kept = (await read(root)).filter(({ sequence }) => sequence > before).reverse();
      expect(kept.map(brief).slice(-2)).to.deep.equal(['changed tenant', 'removed tenant']);
      expect(kept.at(-1)).to.deep.include({ target: 'shortlived', of: { tenantId: 'shortlived', sequence: 8, hash: seen[0]?.['hash'] } });
      expect(kept.at(-2)?.['changes']).to.deep.equal([{ member: 'status', before: 'active', after: 'suspended' }]);
      const gone = await service.call('GET', '/audit-log?tenant=shortlived', { token: root });
      expect(gone.status).to.equal(404);
    });

    it('shows each tenant its own complete chain only', async () => {
      const other = await createTenant(service, `other-${kind.name}`);
      for (const tenant of ['acme', 'nothing']) {
        const answer = await service.call('GET', `/audit-log?tenant=${tenant}`, { token: other.token });
        expect([answer.status, answer.body.detail]).to.deep.equal([404, 'there is no such tenant']);
      }
      const own = await service.call('GET', `/audit-log?tenant=${other.id}`, { token: other.token });
      expect(own.body).to.deep.equal((await service.call('GET', '/audit-log', { token: other.token })).body);
      expect(JSON.stringify(own.body)).to.not.include('acme');
      const restricted = await addClient(world, `restricted-${kind.name}`, {
        roles: ['clients:manage'],
        allowedIssuanceConfigs: [world.ids.credential],
      });
      const refused = await service.call('GET', '/audit-log', { token: restricted });
      expect([refused.status, refused.body.code]).to.deep.equal([403, 'forbidden']);
    });

    it('is returned in linked pages and by filters', async () => {
      const all = await read();
      const sequences = all.map(({ sequence }) => sequence);
      expect(sequences).to.deep.equal(sequences.toSorted((one, two) => two - one));
      expect(sequences.at(-1)).to.equal(1);
      let link: string | null | undefined = `${service.address}/audit-log?limit=7&actor=acme-admin`;
      const found: number[] = [];
      for (let pages = 0; link !== undefined; pages++) {
        expect(pages).to.be.lessThan(100);
        const page = await service.call('GET', link, { token: world.token });
        expect(page.status).to.equal(200);
        expect(page.body.length).to.be.within(1, 7);
        found.push(...page.body.map(({ sequence }: Entry) => sequence));
        link = /^<(.+)>; rel="next"$/.exec(page.headers.get('link') ?? '')?.[1];
      }
      const byAdmin = all.filter(({ actor }) => actor === 'acme-admin');
      expect(found).to.deep.equal(byAdmin.map(({ sequence }) => sequence));
      const target = world.ids.credential;
      for (const [query, wanted] of [
        ['kind=key-chain', (entry: Entry) => entry.kind === 'key-chain'],
        ['action=removed', (entry: Entry) => entry.action === 'removed'],
        [`target=${target}`, (entry: Entry) => entry.target === target],
        [`kind=client&action=rotated`, (entry: Entry) => brief(entry) === 'rotated client'],
        [`since=${all[9]?.['at']}`, (entry: Entry) => String(entry['at']) >= String(all[9]?.['at'])],
        [`until=${all[9]?.['at']}`, (entry: Entry) => String(entry['at']) < String(all[9]?.['at'])],
      ] as const) {
        const expected = all.filter(wanted);
        expect(expected.length, query).to.be.greaterThan(0);
        expect(await read(world.token, `&${query}`), query).to.deep.equal(expected);
      }
      for (const query of ['cursor=x', 'cursor=-1', 'kind=nothing', 'since=yesterday', 'limit=501', 'limit=0']) {
        const { status } = await service.call('GET', `/audit-log?${query}`, { token: world.token });
        expect(status, query).to.equal(400);
      }
    });

    it('contains no secret, no claim and no key', async () => {
      const registrar = await sharedRegistrar();
      const secret = 'secret-of-a-client-in-the-clear';
      const { token } = world;
      await createResource(service, token, '/client', { clientId: `told-${kind.name}`, roles: ['issuance:offer'], secret });
      const rotated = await service.call('POST', `/client/told-${kind.name}/rotate-secret`, { token });
      const signing = await createResource(service, token, '/webhook-secret/rotate', {});
      await createResource(service, token, '/webhook-secret/rotate', {});
      const credentialConfiguration = {
        claimsWebhook: { url: `https://backend.example/?token=${WEBHOOK_KEY}` },
        claims: { given_name: 'Wilhelmina', family_name: 'Unmistakable' },
      };
      const path = `/issuer/credentials/${world.ids.credential}`;
      const changed = await service.call('PATCH', path, { token, json: credentialConfiguration });
      expect(changed.status, changed.text).to.equal(200);
      await createResource(service, token, '/issuer/offer', claimsWebhookOffer(world.ids.credential));
      const login = registrar.login() as Readonly<Record<string, unknown>>;
      await createResource(service, token, '/registrar/config', login);
      const rows = await rawSql(database?.url ?? '', async (run) => [
        ...(await run('select * from audit_entries')),
        ...(await run('select * from audit_heads')),
      ]);
      expect(rows.length).to.be.greaterThan(50);
      const texts = { rows: JSON.stringify(rows), own: JSON.stringify(await read()), service: JSON.stringify(await read(root)) };
      const secrets = [
        ...[WEBHOOK_KEY, UPSTREAM_SECRET, secret, rotated.body.secret, ROOT.secret],
        signing.secret.slice('whsec_'.length),
        ...['Wilhelmina', 'Unmistakable', 'Lovelace', 'backend.example', 'PRIVATE KEY', '-----BEGIN', '$argon2'],
        ...[login['password'], login['clientSecret']].filter((value) => value !== undefined),
      ];
      for (const value of secrets) {
        expect(String(value).length).to.be.greaterThan(3);
        for (const [name, text] of Object.entries(texts)) expect(text, `${name}: ${value}`).to.not.include(value);
      }
      expect(texts.own).to.include('"member":"claims"');
    });

    it('is intact after all changes of this suite', async () => {
      const { container } = service.service;
      const macs = container.get(Cipher).macs(AUDIT_LOG);
      const scopes: string[] = [];
      for await (const { scope, fault } of new VerifyAuditLog({ store: container.get(Store), macs }).execute()) {
        expect(fault, scope).to.equal(undefined);
        scopes.push(scope);
      }
      expect(scopes).to.include.members(['', 'acme']);
    });
  });
}

/** As a server answers whose disk has no room for another entry. */
const FILL = [
  `create function refuse_entry() returns trigger language plpgsql as
     'begin raise exception ''could not extend file'' using errcode = ''53100''; end'`,
  'create trigger full_disk before insert on audit_entries for each row execute function refuse_entry()',
];
const EMPTY = ['drop trigger full_disk on audit_entries', 'drop function refuse_entry()'];

describe('revocation whose audit entry does not fit on the full disk of PostgreSQL', () => {
  let database: TestDatabase | undefined;
  let service: TestService;
  let tenant: { readonly id: string; readonly token: string };

  before(async function () {
    database = await databases()
      .find(({ name }) => name === 'postgres')
      ?.open();
    if (database === undefined) return this.skip();
    service = await startTestService({ DATABASE_URL: database.url });
    tenant = await createRevocableIssuer(service, 'acme', 1);
  });
  after(async () => {
    await service?.close();
    await database?.drop();
  });

  const run = (statements: readonly string[]) =>
    rawSql(database?.url ?? '', async (sql) => {
      for (const statement of statements) await sql(statement);
    });
  const revoke = async (sessionId: string) => {
    const json = { sessionId, status: 1 };
    return (await service.call('POST', '/session/revoke', { token: tenant.token, json })).status;
  };

  it('can be retried, also concurrently, and succeeds once there is space', async () => {
    const sessions: string[] = [];
    while (sessions.length < 6) sessions.push((await issueBatch(service, tenant, 1)).session);
    await run(FILL);
    try {
      expect(await revoke(sessions[0] ?? '')).to.equal(503);
      expect(new Set(await Promise.all(sessions.map(revoke)))).to.deep.equal(new Set([503]));
    } finally {
      await run(EMPTY);
    }
    expect(new Set(await Promise.all(sessions.map(revoke)))).to.deep.equal(new Set([201]));
    const { body } = await service.call('GET', '/audit-log?kind=session', { token: tenant.token });
    expect(body.map(({ target }: { target: string }) => target).toSorted()).to.deep.equal(sessions.toSorted());
  });
});
