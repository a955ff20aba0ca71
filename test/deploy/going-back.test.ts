import { createServer } from 'node:net';
import { expect } from 'chai';
import { freePort } from '../demo/process.ts';
import { Backend } from '../support/backend.ts';
import { type DatabaseKind, databases, type TestDatabase } from '../support/databases.ts';
import { createResource } from '../support/populated.ts';
import { issue, present, requestPresentation } from '../support/present.ts';
import { stopPrograms, waitForAnswer } from '../support/programs.ts';
import { asService } from '../support/release-state.ts';
import { type Callable, createTenant } from '../support/test-service.ts';
import { Releases, stop } from '../support/upgrade.ts';

const PERSON = { given_name: 'Ada', number: '1815-12-10' };
const credential = (id: string) => ({
  id,
  config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
  vct: 'urn:back:card',
  claims: PERSON,
  disclosureFrame: { _sd: ['given_name'] },
  statusManagement: true,
  subjectClaims: [['number']],
});
const query = (url: string) => ({
  id: 'check',
  dcql_query: {
    credentials: [{ id: 'card', format: 'dc+sd-jwt', meta: { vct_values: ['urn:back:card'] }, claims: [{ path: ['given_name'] }] }],
  },
  trustAnchors: [{ keyChainId: 'signing' }],
  webhook: { url: `${url}/told` },
});

for (const kind of databases()) describe(`downgrade to the first release, on ${kind.name}`, suite(kind));

function suite(kind: DatabaseKind) {
  return function (this: Mocha.Suite) {
    this.timeout(120_000);
    let database: TestDatabase | undefined;
    let backend: Backend;
    let releases: Releases;
    let port: number;
    let calls: Callable;
    let token: string;

    before(async function () {
      database = await kind.openEmpty();
      if (database === undefined) return this.skip();
      backend = await Backend.start();
      port = await freePort(createServer);
      releases = new Releases(`http://localhost:${port}`, { DATABASE_URL: database.url });
      calls = releases.callsTo(port);
    });
    after(async () => {
      await stopPrograms();
      releases?.remove();
      await backend?.close();
      await database?.drop();
    });

    const get = async (path: string) => (await calls.call('GET', path, { token })).body;
    /** Signature headers of the last call to the backend. */
    const signature = async () => {
      const credential = await issue(asService(calls), { id: 'acme', token }, 'kept');
      const callsBefore = backend.calls.length;
      const presentationResponse = await present(asService(calls), await requestPresentation(asService(calls), token, 'check'), credential);
      expect(presentationResponse.status, presentationResponse.text).to.equal(200);
      expect(backend.calls.length).to.equal(callsBefore + 1);
      return backend.calls.at(-1)?.headers['webhook-signature'];
    };
    const readRevoked = async () => {
      const json = { claims: { number: PERSON.number } };
      const { status, body } = await calls.call('POST', '/credentials/revoke-by-subject', { token, json });
      expect(status, JSON.stringify(body)).to.equal(201);
      return body.revoked as number;
    };

    it('keeps features of later releases as docs/reference/compatibility.md states, and neither runs nor loses the others', async () => {
      const presentRelease = await releases.start('present', port);
      ({ token } = await createTenant(calls, 'acme'));
      for (const id of ['kept', 'written']) await createResource(calls, token, '/issuer/credentials', credential(id));
      await createResource(calls, token, '/verifier/config', query(backend.url));
      expect(await signature(), 'of this release').to.match(/^v1,/);
      const rootToken = await calls.rootToken();
      const { token: boundToken } = await createTenant(calls, 'bound', { profile: 'haip' });
      const json = { ...query(backend.url), trustAnchors: [], responseMode: 'direct_post' };
      const rejection = await calls.call('POST', '/verifier/config', { token: boundToken, json });
      expect(rejection.status, 'rejected by its profile').to.equal(400);
      const kiosk = { clientId: 'kiosk', secret: 'secret-of-the-kiosk-0123456789', roles: ['issuance:offer'] };
      await createResource(calls, token, '/client', kiosk);
      const expiredToken = await calls.token('kiosk', kiosk.secret);
      expect((await calls.call('POST', '/client/kiosk/rotate-secret', { token })).status).to.equal(201);
      const sessionStatus = async (bearer: string) => (await calls.call('GET', '/session', { token: bearer })).status;
      expect(await sessionStatus(expiredToken), 'a token of a secret that was rotated').to.equal(401);
      await stop(presentRelease);

      const formerRelease = await releases.start('first', port);
      const tenantResponse = (await calls.call('GET', '/tenant/bound', { token: rootToken })).body;
      expect(tenantResponse.id, 'the tenant').to.equal('bound');
      expect(tenantResponse, 'its profile').to.not.have.property('profile');
      const acceptedResponse = await calls.call('POST', '/verifier/config', { token: boundToken, json });
      expect(acceptedResponse.status, `rejected by the profile: ${acceptedResponse.text}`).to.equal(201);
      expect(await get('/issuer/credentials/kept')).to.not.have.property('subjectClaims');
      expect(await sessionStatus(expiredToken), 'the same token').to.equal(200);
      const change = { token, json: { lifeTime: 86_400 } };
      const patchResponse = await calls.call('PATCH', '/issuer/credentials/written', change);
      expect(patchResponse.status, patchResponse.text).to.equal(200);
      expect(await signature(), 'of the first release').to.equal(undefined);
      const revocationResponse = await calls.call('POST', '/credentials/revoke-by-subject', { token, json: {} });
      expect(revocationResponse.status, 'revoke all of one person').to.equal(404);
      await stop(formerRelease);

      await releases.start('present', port);
      const tenantAfterwards = (await calls.call('GET', '/tenant/bound', { token: await calls.rootToken() })).body;
      expect(tenantAfterwards.profile, 'the profile, which was kept').to.equal('haip');
      expect((await get('/issuer/credentials/kept')).subjectClaims).to.deep.equal([['number']]);
      expect((await get('/issuer/credentials/written')).subjectClaims ?? null, 'lost').to.equal(null);
      expect(await signature()).to.match(/^v1,/);
      expect(await sessionStatus(expiredToken)).to.equal(401);
      expect(await readRevoked(), 'all except the one of the first release').to.equal(2);
    });

    it('does not start with a master secret in Vault', async () => {
      for (const MASTER_SECRET of ['vault:house:vidimus', 'vault:house:a-key-with-quite-a-long-name']) {
        const otherReleases = new Releases(`http://localhost:${port}`, { DATABASE_URL: database?.url ?? '', MASTER_SECRET });
        try {
          const program = otherReleases.launch('first', await freePort(createServer));
          const served = await waitForAnswer(program, 'http://127.0.0.1:1', { seconds: 8 }).catch(() => false);
          expect(served).to.equal(false);
          expect(program.child.exitCode, `${MASTER_SECRET}: ${program.output()}`).to.equal(1);
        } finally {
          await stopPrograms();
          otherReleases.remove();
        }
      }
    });
  };
}
