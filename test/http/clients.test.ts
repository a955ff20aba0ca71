import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import sinon from 'sinon';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import { httpDatabases, rawSql, type TestDatabase } from '../support/databases.ts';
import { createTenant, MASTER_SECRET, ROOT, startTestService, TENANT_ROLES, type TestService } from '../support/test-service.ts';

const SECRET = 'a-secret-that-was-agreed-on';

describe('clients over HTTP', () => {
  let service: TestService;
  let root: string;
  let token: string;

  before(async () => {
    service = await startTestService();
    root = await service.rootToken();
    ({ token } = await createTenant(service, 'acme'));
  });
  after(() => service.close());

  const call = (method: string, path: string, json?: unknown, as = token) =>
    service.call(method, path, { token: as, ...(json === undefined ? {} : { json }) });
  const create = (clientId: string, more: object = {}) => call('POST', '/client', { clientId, roles: ['issuance:offer'], ...more });
  const login = (client_id: string, client_secret: string) =>
    service.call('POST', '/oauth2/token', { json: { grant_type: 'client_credentials', client_id, client_secret } });

  it('are created, read, listed, changed and deleted', async () => {
    const made = await create('shop', { secret: SECRET, description: 'The shop' });
    expect(made.status, made.text).to.equal(201);
    const { createdAt, updatedAt, tenant, warnings, ...fields } = made.body;
    expect(warnings).to.deep.equal([]);
    expect(tenant).to.include({ id: 'acme', name: 'Tenant acme', description: null, status: 'active' });
    expect(Object.keys(tenant)).to.have.length(5);
    expect(fields).to.deep.equal({
      clientId: 'shop',
      roles: ['issuance:offer'],
      description: 'The shop',
      tenantId: 'acme',
      allowedPresentationConfigs: null,
      allowedIssuanceConfigs: null,
    });
    expect(new Date(createdAt) <= new Date(updatedAt)).to.equal(true);
    expect({ ...(await call('GET', '/client/shop')).body, warnings }).to.deep.equal(made.body);
    const list = (await call('GET', '/client')).body.map(({ clientId }: { clientId: string }) => clientId);
    expect(list).to.deep.equal(['acme-admin', 'shop']);

    const json = { roles: ['issuance:manage'], allowedIssuanceConfigs: ['pid'] };
    const changed = await call('PATCH', '/client/shop', json);
    expect(changed.status, changed.text).to.equal(200);
    expect(changed.body).to.deep.include({ ...json, description: 'The shop' });
    const reset = { roles: ['issuance:manage'], allowedIssuanceConfigs: null, description: null };
    expect((await call('PATCH', '/client/shop', reset)).body).to.deep.include(reset);
    expect((await call('PATCH', '/client/shop', { description: 'x' })).status, 'roles are required').to.equal(400);

    const deleted = await call('DELETE', '/client/shop');
    expect([deleted.status, deleted.body]).to.deep.equal([200, { id: 'shop' }]);
    for (const method of ['GET', 'DELETE']) expect((await call(method, '/client/shop')).status).to.equal(404);
    expect((await login('shop', SECRET)).status).to.equal(401);
  });

  it('get warnings for restrictions to unknown configurations', async () => {
    const config = { id: 'identity', config: { format: 'dc+sd-jwt', display: [{ name: 'Identity', locale: 'en' }] } };
    expect((await call('POST', '/issuer/credentials', config)).status).to.equal(201);
    const restrictions = { allowedIssuanceConfigs: ['identity', 'identiti'], allowedPresentationConfigs: ['age'] };
    const made = await create('restricted', restrictions);
    expect(made.status, made.text).to.equal(201);
    const told = (answer: typeof made) =>
      answer.body.warnings.map(({ member, message, change }: Record<string, string>) => [member, message, change]);
    expect(told(made)).to.deep.equal([
      ['allowedIssuanceConfigs', 'the configuration "identiti" does not exist, so this id allows nothing', 'make it, or write identity'],
      ['allowedPresentationConfigs', 'the configuration "age" does not exist, so this id allows nothing', 'create it, or remove the id'],
    ]);
    const json = { roles: ['issuance:offer'], allowedIssuanceConfigs: ['identity'], allowedPresentationConfigs: [] };
    expect(told(await call('PATCH', '/client/restricted', json))).to.deep.equal([]);
    const etag = (await call('GET', '/client/restricted')).headers.get('etag');
    const spelled = await call('PATCH', '/client/restricted', { ...json, allowedIssuanceConfigs: ['x'] });
    expect(told(spelled)).to.have.length(1);
    expect(spelled.headers.get('etag'), 'of what is stored').to.equal((await call('GET', '/client/restricted')).headers.get('etag'));
    expect(spelled.headers.get('etag')).to.not.equal(etag);
    expect((await call('DELETE', '/client/restricted')).status).to.equal(200);
  });

  it('are rejected with invalid values, each at its path', async () => {
    const answer = await create('fine', { roles: ['everything'] });
    expect([answer.status, answer.body.code], answer.text).to.deep.equal([400, 'invalid_input']);
    expect(answer.body.errors[0].path).to.equal('roles.0');
  });

  it('have ids that are unique in the whole service', async () => {
    const other = await createTenant(service, 'other');
    expect((await create('taken')).status).to.equal(201);
    const json = { clientId: 'taken', roles: ['issuance:offer'] };
    for (const attempt of [await create('taken'), await call('POST', '/client', json, other.token)])
      expect([attempt.status, attempt.body.code]).to.deep.equal([409, 'conflict']);
    expect((await create('root')).status, 'the client of the configuration').to.equal(409);
  });

  it('cannot be granted rights that their creator lacks', async () => {
    const roles = ['clients:manage', 'issuance:offer'];
    await create('steward', { roles, secret: SECRET, allowedIssuanceConfigs: ['pid', 'mdl'] });
    const steward = await service.token('steward', SECRET);
    const as = (method: string, path: string, json: object) => call(method, path, json, steward);
    const own = { clientId: 'helper', roles: ['issuance:offer'], allowedIssuanceConfigs: ['pid'] };
    const more = { ...own, clientId: 'more', roles: ['issuance:manage'] };
    expect((await as('POST', '/client', more)).status, 'a role that it lacks').to.equal(403);
    for (const allowedIssuanceConfigs of [null, [], ['pid', 'secret']]) {
      const wider = { ...own, clientId: 'wider', allowedIssuanceConfigs };
      expect((await as('POST', '/client', wider)).status, String(allowedIssuanceConfigs)).to.equal(403);
    }
    expect((await as('POST', '/client', own)).status).to.equal(201);
    const raise = { roles: ['issuance:offer', 'presentation:manage'] };
    for (const id of ['helper', 'steward']) expect((await as('PATCH', `/client/${id}`, raise)).status, id).to.equal(403);
    const widen = { roles: ['clients:manage'], allowedIssuanceConfigs: null };
    expect((await as('PATCH', '/client/steward', widen)).status, 'itself').to.equal(403);
    const master = { roles: ['tenants:manage'] };
    expect((await call('PATCH', '/client/helper', master)).status).to.equal(400);
    expect((await call('GET', '/client/steward')).body.roles).to.have.members(roles);
  });

  it('cannot be changed or deleted by a client with fewer rights', async () => {
    await create('mighty', { roles: ['issuance:manage', 'clients:manage'], secret: SECRET });
    await create('lesser', { roles: ['clients:manage'], secret: SECRET });
    const lesser = await service.token('lesser', SECRET);
    for (const [method, path, json] of [
      ['PATCH', '/client/mighty', { roles: ['clients:manage'] }],
      ['PATCH', '/client/mighty', { roles: ['issuance:manage', 'clients:manage'], description: 'x' }],
      ['PATCH', '/client/acme-admin', { roles: ['clients:manage'] }],
      ['DELETE', '/client/mighty', undefined],
      ['DELETE', '/client/acme-admin', undefined],
      ['POST', '/client/mighty/rotate-secret', undefined],
      ['GET', '/client/mighty/secret', undefined],
    ] as const) {
      const answer = await call(method, path, json, lesser);
      expect([answer.status, answer.body.code], `${method} ${path}`).to.deep.equal([403, 'forbidden']);
    }
    expect((await login('mighty', SECRET)).status).to.equal(200);
    expect((await call('PATCH', '/client/lesser', { roles: ['clients:manage'] }, lesser)).status).to.equal(200);
    expect((await call('DELETE', '/client/mighty')).status).to.equal(200);
  });

  it('gain and lose rights at once, regardless of their tokens', async () => {
    await create('clerk', { secret: SECRET, roles: ['issuance:manage'] });
    const clerk = await service.token('clerk', SECRET);
    const see = async () => (await call('GET', '/issuer/credentials', undefined, clerk)).status;
    expect(await see()).to.equal(200);
    await call('PATCH', '/client/clerk', { roles: ['presentation:request'] });
    expect(await see()).to.equal(403);
    await call('PATCH', '/client/clerk', { roles: ['issuance:manage'] });
    expect(await see()).to.equal(200);
    await call('DELETE', '/client/clerk');
    expect(await see()).to.equal(401);
  });

  it('cannot have reserved names of operators', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'vidimus-test-'));
    const url = { DATABASE_URL: `sqlite:${join(folder, 'names.sqlite')}` };
    const first = await startTestService(url);
    await createTenant(first, 'named');
    await first.close();
    const error = await startTestService({ ...url, AUTH_CLIENT_ID: 'named-admin' }).catch((thrown) => thrown);
    expect(String(error)).to.match(/AUTH_CLIENT_ID: "named-admin" is a client of the tenant named/);
    rmSync(folder, { recursive: true, force: true });
  });

  it('accept the former name of a role', async () => {
    const made = await create('older', { roles: ['presentation:offer'] });
    expect(made.body.roles).to.deep.equal(['presentation:request']);
  });

  describe('secrets', () => {
    it('can be fetched once, by the role that created the client, and are generated by default', async () => {
      const made = await create('generated');
      expect(made.body).to.not.have.property('secret');
      expect((await call('GET', '/client/generated/secret', undefined, root)).status).to.equal(403);
      const picked = await call('GET', '/client/generated/secret');
      expect([picked.status, Object.keys(picked.body)]).to.deep.equal([200, ['secret']]);
      expect(picked.body.secret).to.match(/^[\w-]{43}$/);
      expect(picked.headers.get('cache-control')).to.equal('no-store');
      const again = await call('GET', '/client/generated/secret');
      expect([again.status, again.body.code]).to.deep.equal([410, 'gone']);
      expect((await login('generated', picked.body.secret)).status).to.equal(200);
      await create('given', { secret: SECRET });
      expect((await call('GET', '/client/given/secret')).body).to.deep.equal({ secret: SECRET });
      expect((await call('GET', '/client/nobody/secret')).status).to.equal(404);
    });

    it('cannot be fetched after ten minutes', async () => {
      await create('late');
      const clock = sinon.useFakeTimers({ now: Date.now() + 10 * 60_000 + 1_000, toFake: ['Date'] });
      try {
        expect((await call('GET', '/client/late/secret')).status).to.equal(410);
      } finally {
        clock.restore();
      }
      expect((await call('GET', '/client/late/secret')).status, 'and are erased then').to.equal(410);
    });

    it('are replaced at once, by the tenant or by an account that manages tenants', async () => {
      await create('turned', { secret: SECRET });
      let old = SECRET;
      for (const as of [token, root]) {
        const rotated = await call('POST', '/client/turned/rotate-secret', undefined, as);
        expect([rotated.status, Object.keys(rotated.body)]).to.deep.equal([201, ['secret']]);
        const refused = await login('turned', old);
        expect([refused.status, refused.body.error]).to.deep.equal([401, 'invalid_client']);
        expect((await login('turned', rotated.body.secret)).status).to.equal(200);
        old = rotated.body.secret;
      }
      expect((await call('GET', '/client/turned/secret')).status, 'nothing waits any more').to.equal(410);
      const other = await createTenant(service, 'stranger');
      const foreign = await call('POST', '/client/turned/rotate-secret', undefined, other.token);
      expect(foreign.status).to.equal(404);
      expect((await login('turned', old)).status).to.equal(200);
    });

    it('are set by the environment for the built-in client, with an explanation for operators', async () => {
      const path = `/client/${ROOT.clientId}/rotate-secret`;
      const told = await call('POST', path, undefined, root);
      expect([told.status, told.body.detail ?? told.text].join(' ')).to.match(/^404 .*AUTH_CLIENT_SECRET/);
      const tenant = await call('POST', path);
      expect(tenant.status).to.equal(404);
      const { requestId: _one, ...said } = tenant.body;
      const { requestId: _other, ...ofNobody } = (await call('POST', '/client/nobody/rotate-secret')).body;
      expect(said, 'as of a client that nobody has').to.deep.equal(ofNobody);
    });

    it('appear in no list and in no document', async () => {
      await create('quiet', { secret: 'never-to-be-read-again-anywhere' });
      const answers = [
        await call('GET', '/client'),
        await call('GET', '/client/quiet'),
        await call('PATCH', '/client/quiet', { roles: TENANT_ROLES }),
        await call('GET', '/tenant', undefined, root),
        await call('GET', '/tenant/acme', undefined, root),
      ];
      for (const { status, text } of answers) {
        expect(status).to.equal(200);
        expect(text).to.not.match(/never-to-be-read|secretHash|argon2|"secret"/);
      }
    });
  });
});

const CLIENT = { clientId: 'shop', secret: 'a-secret-of-sixteen-letters', roles: ['issuance:offer'] };

for (const kind of httpDatabases()) {
  describe(`rights of clients in a database on ${kind.name}`, () => {
    let database: TestDatabase;
    let service: TestService;
    let admin: string;

    /** Has a tenant with the client as it is before each test. */
    let prepared: TestDatabase | undefined;

    before(async function () {
      prepared = await kind.open();
      if (prepared === undefined) return this.skip();
      service = await startTestService({ DATABASE_URL: prepared.url });
      admin = (await createTenant(service, 'acme')).token;
      const made = await service.call('POST', '/client', { token: admin, json: CLIENT });
      expect(made.status, made.text).to.equal(201);
      await service.close();
    });
    beforeEach(async function () {
      if (prepared === undefined) return this.skip();
      database = await kind.copy(prepared);
      service = await startTestService({ DATABASE_URL: database.url });
    });
    afterEach(async () => {
      await service?.close();
      await database?.drop();
    });
    after(() => prepared?.drop());

    const write = (text: string) => rawSql(database.url, (run) => run(text));
    const login = async (secret = CLIENT.secret) => {
      const json = { grant_type: 'client_credentials', client_id: CLIENT.clientId, client_secret: secret };
      const answer = await service.call('POST', '/oauth2/token', { json });
      return { status: answer.status, token: answer.body.access_token as string | undefined };
    };
    const again = async () => {
      await service.close();
      service = await startTestService({ DATABASE_URL: database.url });
    };
    const forged = async () => {
      const cipher = new MasterCipher({ masterSecrets: [MASTER_SECRET] });
      const store = await OrmStore.open({ url: database.url, poolSize: 2, migrates: false }, cipher);
      try {
        return await store.forgedClients();
      } finally {
        await store.close();
      }
    };

    it('are valid as the service wrote them, also after each change and a restart', async () => {
      expect((await login()).status).to.equal(200);
      const changed = await service.call('PATCH', `/client/${CLIENT.clientId}`, {
        token: admin,
        json: { roles: ['issuance:offer', 'presentation:request'], allowedIssuanceConfigs: ['a', 'b'] },
      });
      expect(changed.status, changed.text).to.equal(200);
      const rotated = await service.call('POST', `/client/${CLIENT.clientId}/rotate-secret`, { token: admin });
      expect((await login(rotated.body.secret)).status).to.equal(200);
      await again();
      expect((await login(rotated.body.secret)).status).to.equal(200);
      expect(await forged()).to.deep.equal([]);
    });

    for (const [what, change] of [
      ['more roles', `roles = '["clients:manage","issuance:manage"]'`],
      ['another tenant', `tenant_id = 'other'`],
      ['fewer restrictions', `allowed_issuance_configs = '["b"]'`],
      ['another secret hash', `secret_hash = (select secret_hash from clients where client_id <> 'shop' limit 1)`],
      ['an older secret revision', `secret_revision = secret_revision + 1`],
      ['more time for a former secret', `former_secret_until = 9999999999999`],
      ['no code', `mac = null`],
      ['the code of another client', `mac = (select mac from clients where client_id <> 'shop' limit 1)`],
    ] as const) {
      it(`are ignored with ${what} written by another program`, async () => {
        const { token } = await login();
        await again();
        await write(`update clients set ${change} where client_id = 'shop'`);
        await again();
        expect((await login()).status).to.equal(401);
        expect((await service.call('GET', '/session', { token: token ?? '' })).status).to.equal(401);
        const listed = await service.call('GET', '/client', { token: admin });
        expect(listed.body.map(({ clientId }: { clientId: string }) => clientId)).to.not.include('shop');
        expect(await forged()).to.deep.equal(['shop']);
      });
    }

    it('are not adopted when the marker and the MAC of a client are removed', async () => {
      await write(`delete from client_mac_markers`);
      await write(`update clients set mac = null, roles = '["clients:manage"]' where client_id = 'shop'`);
      await again();
      expect((await login()).status).to.equal(401);
    });
  });
}
