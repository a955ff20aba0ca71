import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { expect } from 'chai';
import { databases, type TestDatabase } from '../support/databases.ts';
import { runCommand } from '../support/run-command.ts';
import { isSignedWith, signaturesOf } from '../support/signed-calls.ts';
import { SignedWorld } from '../support/signed-world.ts';

const MASTER_SECRET = 'a master secret for signed calls 0123456789';

for (const kind of databases()) {
  describe(`The secret of webhooks, on ${kind.name}`, () => {
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
    beforeEach(() => world.forget());

    const call = (method: string, path: string, json?: object, headers: Record<string, string> = {}) =>
      world.issuer.service.call(method, path, {
        ...{ token: world.issuer.token, headers },
        ...(json && { json }),
      });
    const signedWith = async (...secrets: readonly string[]) => {
      const made = await world.claimsCall();
      const fitting = secrets.map((secret) => isSignedWith(secret, made));
      expect(signaturesOf(made), 'and nothing else').to.equal(fitting.filter(Boolean).length);
      return fitting;
    };

    it('is not made over what somebody else did meanwhile, also when it is the first', async () => {
      const { headers } = await call('GET', '/webhook-secret');
      const seen = { 'If-Match': headers.get('etag') ?? '' };
      const first = await call('POST', '/webhook-secret/rotate', {}, seen);
      expect(first.status, first.text).to.equal(201);
      world.told.push(first.body.secret);
      for (const [method, path, json] of [
        ['POST', '/webhook-secret/rotate', {}],
        ['PATCH', '/webhook-secret', { signing: 'off' }],
      ] as const) {
        const late = await call(method, path, json, seen);
        expect([late.status, late.body.code], path).to.deep.equal([409, 'conflict']);
      }
      expect(await signedWith(first.body.secret)).to.deep.equal([true]);
    });

    it('signs beside the new one during the overlap, and not afterwards', async () => {
      const first = await world.rotate({ overlapSeconds: 0 });
      const second = await world.rotate({ overlapSeconds: 2 });
      const third = await world.rotate({ overlapSeconds: 604_800 });
      expect(await signedWith(first, second, third)).to.deep.equal([true, true, true]);
      const { former } = (await call('GET', '/webhook-secret')).body;
      const [long = 0, short = 0] = former.map(
        ({ signsUntil }: { signsUntil: string }) => Date.parse(signsUntil) - Date.now(),
      );
      expect(former).to.have.length(2);
      expect(long).to.be.closeTo(604_800_000, 5_000);
      expect(short).to.be.within(-1_000, 2_000);
      await setTimeout(Math.max(0, short) + 50);
      expect(await signedWith(first, second, third)).to.deep.equal([false, true, true]);
      expect((await call('GET', '/webhook-secret')).body.former).to.have.length(1);
      const fourth = await world.rotate({ overlapSeconds: 0 });
      expect(await signedWith(second, third, fourth)).to.deep.equal([false, false, true]);
    });

    it('stands nowhere: no answer, export, log or audit entry has it', async () => {
      await world.rotate();
      const paths = ['/webhook-secret', '/audit-log?limit=500', '/session?limit=100', '/issuer/credentials'];
      const seen = await Promise.all(paths.map((path) => call('GET', path)));
      const faulty = { overlapSeconds: 'a while', secret: world.told[0] };
      seen.push(await call('POST', '/webhook-secret/rotate', faulty));
      expect(seen.map(({ status }) => status)).to.deep.equal([200, 200, 200, 200, 400]);
      expect(world.logged.length, 'something was logged').to.be.greaterThan(0);
      const exported = await exportedFiles();
      expect(exported).to.include('urn:friend:1').and.not.include('whsec_');
      const texts = [exported, ...seen.map(({ text }) => text), JSON.stringify(world.logged)];
      expect(world.told.length).to.be.greaterThan(4);
      for (const secret of world.told) {
        for (const text of texts) expect(text).to.not.include(secret.slice('whsec_'.length));
      }
    });

    const exportedFiles = async () => {
      const folder = mkdtempSync(join(tmpdir(), 'vidimus-test-'));
      const environment = { DATABASE_URL: database?.url ?? '', MASTER_SECRET };
      const run = ['commands/config-export', [world.issuer.id, folder], environment] as const;
      const { code, stderr } = await runCommand(...run);
      expect(code, stderr).to.equal(0);
      const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((file) =>
        file.isFile(),
      );
      const texts = files.map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'utf8'));
      rmSync(folder, { recursive: true });
      return texts.join('\n');
    };
  });
}
