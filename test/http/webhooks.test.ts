import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { expect } from 'chai';
import type { TenantRepositories } from '../../application/ports/repositories.ts';
import { Store } from '../../application/ports/store.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { httpDatabases, type TestDatabase } from '../support/databases.ts';
import { runCommand } from '../support/programs.ts';
import { isSignedWith, SignedWorld, signaturesOf, switchSigning, tamperedCalls } from '../support/signed-calls.ts';

for (const kind of httpDatabases()) {
  describe(`Webhook calls on ${kind.name}`, () => {
    let database: TestDatabase | undefined;
    let world: SignedWorld;
    let foreign: string;

    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      world = await SignedWorld.open({ DATABASE_URL: database.url });
      foreign = await world.otherTenantSecret();
    });
    after(async () => {
      await world?.issuer.close();
      await database?.drop();
    });
    beforeEach(() => world.reset());

    const call = (method: string, path: string, json?: object) =>
      world.issuer.service.call(method, path, { token: world.issuer.token, ...(json && { json }) });

    it('are signed from the start, although no client has read a secret', async () => {
      const before = await call('GET', '/webhook-secret');
      expect(before.body).to.deep.equal({ signing: 'v1', createdAt: null, former: [] });
      const first = await world.claimsCall();
      expect(signaturesOf(first)).to.equal(1);
      expect(isSignedWith(foreign, first)).to.equal(false);
      const secret = await world.rotate();
      expect(isSignedWith(secret, first), 'what was sent before is not vouched for').to.equal(false);
      const next = await world.claimsCall();
      expect([signaturesOf(next), isSignedWith(secret, next)], 'nobody knew the former').to.deep.equal([1, true]);
    });

    for (const [name, make] of Object.entries(SignedWorld.CALLS)) {
      it(`are signed: ${name}`, async () => {
        const secret = await world.rotate({ overlapSeconds: 0 });
        const made = await make(world);
        expect(isSignedWith(secret, made)).to.equal(true);
        expect(isSignedWith(foreign, made), 'of another tenant').to.equal(false);
        for (const bent of tamperedCalls(made)) {
          expect(isSignedWith(secret, bent), JSON.stringify(bent)).to.equal(false);
        }
        expect(made.headers['webhook-id']).to.equal(made.headers['idempotency-key']);
        expect(Number(made.headers['webhook-timestamp'])).to.be.closeTo(Date.now() / 1000, 5);
      });
    }

    for (const [name, make] of Object.entries(SignedWorld.CALLS))
      it(`contain the session and the reference of its offer or request in the body: ${name}`, async () => {
        const { body } = await make(world);
        expect(body.session).to.be.a('string');
        expect(body.reference).to.equal(SignedWorld.REFERENCE);
      });

    it('contain no reference for an offer without one', async () => {
      const { body } = await world.claimsCall({ reference: undefined });
      expect(body).to.not.have.property('reference');
    });

    it('have none of the three headers when the configuration disables them', async () => {
      const secret = await world.rotate();
      expect((await switchSigning(world.issuer, 'off')).body.signing).to.equal('off');
      for (const [name, make] of Object.entries(SignedWorld.CALLS)) {
        world.reset();
        const { headers } = await make(world);
        expect(
          Object.keys(headers).filter((header) => header.startsWith('webhook-')),
          name,
        ).to.deep.equal([]);
        expect(headers['idempotency-key'], 'the delivery has its name').to.be.a('string');
      }
      await switchSigning(world.issuer, 'v1');
      expect(isSignedWith(secret, await world.claimsCall())).to.equal(true);
    });

    it('contain no API key under the name of a signature header', async () => {
      for (const headerName of ['Webhook-Signature', 'webhook-id', 'WEBHOOK-TIMESTAMP', 'Webhook-Token']) {
        const auth = { type: 'apiKey', config: { headerName, value: 'mine' } };
        const refused = await call('POST', '/verifier/config', { id: 'own', webhook: { url: world.issuer.backend.url, auth } });
        expect(refused.status).to.equal(400);
        expect(refused.body.errors.map(({ path }: { path: string }) => path)).to.include('webhook.auth.config.headerName');
      }
    });

    it('continue for a configuration of an earlier release with such a header until the webhook is saved', async () => {
      const { issuer, credential: held } = world;
      const store = issuer.service.service.container.get(Store);
      const config = { headerName: 'Webhook-Token', value: 'key-of-an-earlier-release' };
      const webhook = { url: `${issuer.backend.url}/presented`, auth: { type: 'apiKey', config } } as const;
      await issuer.addPresentationConfig('earlier', { webhook: { url: webhook.url } });
      const write = async (own: TenantRepositories) => {
        const stored = await own.presentationConfigurations.get('earlier');
        await own.presentationConfigurations.put({ ...stored, webhook });
      };
      await store.forTenant(issuer.id as TenantId, write, { by: 'system' });
      const path = '/verifier/config/earlier';
      expect((await call('GET', path)).body.webhook.auth.config).to.deep.equal({ ...config, value: '***' });
      const secret = await world.rotate({ overlapSeconds: 0 });
      const made = await world.presentationCall(held, 200, 'earlier');
      expect(made.headers['webhook-token']).to.equal(config.value);
      expect(isSignedWith(secret, made)).to.equal(true);
      const kept = await call('PATCH', path, { lifeTime: 600 });
      expect(kept.status, kept.text).to.equal(200);
      expect(kept.body.warnings.map(({ member }: { member: string }) => member)).to.include('webhook.auth.config.headerName');
      const refused = await call('PATCH', path, { webhook });
      expect([refused.status, refused.body.errors[0].path]).to.deep.equal([400, 'webhook.auth.config.headerName']);
      const other = { ...webhook.auth, config: { ...config, headerName: 'X-Token' } };
      const changed = await call('PATCH', path, { lifeTime: 600, webhook: { ...webhook, auth: other } });
      expect(changed.status, changed.text).to.equal(200);
    });
  });
}

const MASTER_SECRET = 'a master secret for signed calls 0123456789';

for (const kind of httpDatabases()) {
  describe(`The webhook secret on ${kind.name}`, () => {
    let database: TestDatabase | undefined;
    let world: SignedWorld;

    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      world = await SignedWorld.open({ DATABASE_URL: database.url, MASTER_SECRET });
    });
    after(async () => {
      await world?.issuer.close();
      await database?.drop();
    });
    beforeEach(() => world.reset());

    const call = (method: string, path: string, json?: object, headers: Record<string, string> = {}) =>
      world.issuer.service.call(method, path, { ...{ token: world.issuer.token, headers }, ...(json && { json }) });
    const signedWith = async (...secrets: readonly string[]) => {
      const made = await world.claimsCall();
      const fitting = secrets.map((secret) => isSignedWith(secret, made));
      expect(signaturesOf(made), 'and nothing else').to.equal(fitting.filter(Boolean).length);
      return fitting;
    };

    it('does not overwrite a concurrent change, also when it is the first', async () => {
      const { headers } = await call('GET', '/webhook-secret');
      const seen = { 'If-Match': headers.get('etag') ?? '' };
      const first = await call('POST', '/webhook-secret/rotate', {}, seen);
      expect(first.status, first.text).to.equal(201);
      world.secrets.push(first.body.secret);
      for (const [method, path, json] of [
        ['POST', '/webhook-secret/rotate', {}],
        ['PATCH', '/webhook-secret', { signing: 'off' }],
      ] as const) {
        const late = await call(method, path, json, seen);
        expect([late.status, late.body.code], path).to.deep.equal([409, 'conflict']);
      }
      expect(await signedWith(first.body.secret)).to.deep.equal([true]);
    });

    it('signs together with the new one during the overlap, and not afterwards', async () => {
      const first = await world.rotate({ overlapSeconds: 0 });
      const second = await world.rotate({ overlapSeconds: 2 });
      const third = await world.rotate({ overlapSeconds: 604_800 });
      expect(await signedWith(first, second, third)).to.deep.equal([true, true, true]);
      const { former } = (await call('GET', '/webhook-secret')).body;
      const [long = 0, short = 0] = former.map(({ signsUntil }: { signsUntil: string }) => Date.parse(signsUntil) - Date.now());
      expect(former).to.have.length(2);
      expect(long).to.be.closeTo(604_800_000, 5_000);
      expect(short).to.be.within(-1_000, 2_000);
      await setTimeout(Math.max(0, short) + 50);
      expect(await signedWith(first, second, third)).to.deep.equal([false, true, true]);
      expect((await call('GET', '/webhook-secret')).body.former).to.have.length(1);
      const fourth = await world.rotate({ overlapSeconds: 0 });
      expect(await signedWith(second, third, fourth)).to.deep.equal([false, false, true]);
    });

    it('appears in no answer, export, log or audit entry', async () => {
      await world.rotate();
      const paths = ['/webhook-secret', '/audit-log?limit=500', '/session?limit=100', '/issuer/credentials'];
      const seen = await Promise.all(paths.map((path) => call('GET', path)));
      const faulty = { overlapSeconds: 'a while', secret: world.secrets[0] };
      seen.push(await call('POST', '/webhook-secret/rotate', faulty));
      expect(seen.map(({ status }) => status)).to.deep.equal([200, 200, 200, 200, 400]);
      expect(world.logs.length, 'something was logged').to.be.greaterThan(0);
      const exported = await exportedFiles();
      expect(exported).to.include('urn:friend:1').and.not.include('whsec_');
      const texts = [exported, ...seen.map(({ text }) => text), JSON.stringify(world.logs)];
      expect(world.secrets.length).to.be.greaterThan(4);
      for (const secret of world.secrets) {
        for (const text of texts) expect(text).to.not.include(secret.slice('whsec_'.length));
      }
    });

    const exportedFiles = async () => {
      const folder = mkdtempSync(join(tmpdir(), 'vidimus-test-'));
      const environment = { DATABASE_URL: database?.url ?? '', MASTER_SECRET };
      const run = ['commands/config-export', [world.issuer.id, folder], environment] as const;
      const { code, stderr } = await runCommand(...run);
      expect(code, stderr).to.equal(0);
      const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((file) => file.isFile());
      const texts = files.map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'utf8'));
      rmSync(folder, { recursive: true });
      return texts.join('\n');
    };
  });
}
