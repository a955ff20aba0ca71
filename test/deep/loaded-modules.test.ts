import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { expect } from 'chai';
import { databases, type TestDatabase } from '../support/databases.ts';
import { createResource, credentialBody, offerBody } from '../support/populated.ts';
import { RawWallet } from '../support/raw-wallet.ts';
import { type Callable, createTenant } from '../support/test-service.ts';
import { callerFor, WorkerService } from '../support/worker-service.ts';

const PROBE = new URL('../support/loaded-modules.ts', import.meta.url).href;
/** Modules for administrators, rare requests or other configurations. */
const NOT_LOADED = [
  ...['@mikro-orm/core', '@mikro-orm/sql', '@mikro-orm/postgresql', '@mikro-orm/sqlite', '@mikro-orm/migrations'],
  ...['kysely', 'yaml', '@peculiar/asn1-x509', 'swagger-ui-dist', 'zod-openapi', 'undici'],
  ...['prom-client', '@opentelemetry/api', '@opentelemetry/sdk-trace'],
  ...['amqplib', 'cloudevents', 'node-vault'],
];
/** Modules that validate claims against a schema. */
const CLAIMS_MODULES = ['ajv', 'ajv-formats'];
/** Internal modules of Node for `fetch` and HTTP/2. */
const NOT_LOADED_NODE_MODULES = ['internal/deps/undici/undici', 'http2', 'tls'];
/** Maximum number of files that a start and an issuance may load. On PostgreSQL 451 are loaded. */
const MAX_FILES = 470;

for (const kind of databases()) {
  describe(`modules loaded by a process on ${kind.name}`, () => {
    let database: TestDatabase | undefined;
    let folder: string;
    let service: WorkerService | undefined;

    before(async function () {
      // The process itself migrates the database.
      database = await kind.openEmpty();
      if (database === undefined) return this.skip();
      folder = mkdtempSync(join(tmpdir(), 'vidimus-test-'));
    });
    afterEach(async () => {
      await service?.stop();
      service = undefined;
    });
    after(async () => {
      await database?.drop();
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    });

    const start = async () => {
      service = await WorkerService.start({
        WORKERS: '1',
        DATABASE_URL: database?.url ?? '',
        NODE_OPTIONS: `--import=${PROBE}`,
        LOADED_FILE: join(folder, 'loaded.txt'),
      });
      return callerFor(service.address);
    };
    const loaded = async (): Promise<readonly string[]> => {
      const file = join(folder, 'loaded.txt');
      rmSync(file, { force: true });
      service?.process.kill('SIGUSR2');
      while (!existsSync(file)) await setTimeout(20);
      await setTimeout(50);
      return readFileSync(file, 'utf8').split('\n');
    };
    const packageNames = (urls: readonly string[]) => {
      const packages = urls.flatMap((url) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url)?.[1] ?? []);
      return [...new Set(packages)];
    };
    const expectNoOtherModules = async (allowedModules: readonly string[] = []) => {
      const loadedModules = await loaded();
      const unwantedModules = [...NOT_LOADED, ...CLAIMS_MODULES].filter((name) => !allowedModules.includes(name));
      expect(packageNames(loadedModules).filter((name) => unwantedModules.includes(name))).to.deep.equal([]);
      const nodeModules = loadedModules.map((name) => name.replace('NativeModule ', ''));
      expect(nodeModules.filter((name) => NOT_LOADED_NODE_MODULES.includes(name))).to.deep.equal([]);
      const files = loadedModules.filter((url) => url.startsWith('file:'));
      expect(files.length, 'files').to.be.within(100, MAX_FILES);
    };

    const issue = async (calls: Callable, token: string) => {
      const { uri, session } = await createResource(calls, token, '/issuer/offer', offerBody('pid'));
      const wallet = new RawWallet(calls, 'acme');
      const answer = await wallet.request(await wallet.accessToken(uri), 'pid');
      expect([answer.status, answer.body?.credentials?.length], answer.text).to.deep.equal([200, 1]);
      const { body } = await calls.call('GET', `/session/${session}`, { token });
      expect(body.status).to.equal('completed');
    };

    it('are only those that serving needs at the first start', async () => {
      await start();
      await expectNoOtherModules();
    });

    it('are no others for an issuance by an issuer and a wallet', async () => {
      const firstService = await start();
      const { token } = await createTenant(firstService, 'acme');
      await createResource(firstService, token, '/issuer/credentials', credentialBody('pid', 'signing'));
      // The first issuance of a tenant creates its status list.
      await issue(firstService, token);
      expect(packageNames(await loaded()), 'of who has written').to.include('@mikro-orm/core');
      await service?.stop();

      await issue(await start(), token);
      await expectNoOtherModules(CLAIMS_MODULES);
    });
  });
}
