import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { databases, type TestDatabase } from '../support/databases.ts';
import { canDump, folderOfTools } from '../support/dump-tools.ts';
import { rawSql } from '../support/raw-sql.ts';
import { type Entry, issueBatch, revocable } from '../support/revocable-cards.ts';
import { runCommand } from '../support/run-command.ts';
import { Cluster, canMakeClusters } from '../support/standby.ts';
import { startTestService, type TestService } from '../support/test-service.ts';

const MASTER_SECRET = 'a master secret for the tests 0123456789';

describe('a dump of PostgreSQL that is restored in another cluster', () => {
  const postgres = databases().find(({ name }) => name === 'postgres');
  const folder = mkdtempSync(join(tmpdir(), 'vidimus-dump-'));
  const file = join(folder, 'vidimus.dump');
  let database: TestDatabase | undefined;
  let cluster: Cluster | undefined;
  let tenant: { readonly id: string; readonly token: string };
  let url = '';
  const issued: Entry[] = [];

  const environment = (more: Record<string, string> = {}) => ({
    DATABASE_URL: database?.url ?? '',
    DATA_FOLDER: join(folder, 'data'),
    JWT_ISSUER: 'https://issuer.example',
    MASTER_SECRET,
    ...more,
  });
  const start = (more: Record<string, string> = {}): Promise<TestService> =>
    startTestService(environment(more));
  const refusal = async (more: Record<string, string>) => {
    const service = await start(more).catch((error: Error) => error);
    if (service instanceof Error) return service.message;
    await service.close();
    return '';
  };

  before(async function () {
    database = await postgres?.open();
    if (database === undefined || !canMakeClusters() || !(await canDump(database.url))) return this.skip();
    const service = await start();
    tenant = await revocable(service, 'acme', 10);
    issued.push(...(await issueBatch(service, tenant)).entries);
    execFileSync(join(folderOfTools(), 'pg_dump'), ['-Fc', '-f', file, database.url], { stdio: 'pipe' });
    for (let i = 0; i < 3; i++) issued.push(...(await issueBatch(service, tenant)).entries);
    await service.close();
    cluster = await Cluster.make();
    await cluster.start();
    await rawSql(cluster.urlOf('postgres'), (run) => run('create database vidimus'));
    url = cluster.urlOf('vidimus');
    execFileSync(join(folderOfTools(), 'pg_restore'), ['--no-owner', '-d', url, file], { stdio: 'pipe' });
  });
  after(async () => {
    await cluster?.remove();
    await database?.drop();
    rmSync(folder, { recursive: true, force: true });
  });

  it('is not served, neither where the former one was seen nor where nobody has seen it', async () => {
    expect(await refusal({ DATABASE_URL: url }))
      .to.include('gone back in time')
      .and.to.include('ACCEPT_REWIND=');
    const elsewhere = { DATABASE_URL: url, DATA_FOLDER: join(folder, 'elsewhere') };
    expect(await refusal(elsewhere))
      .to.include('not where it was')
      .and.to.include('ACCEPT_REWIND=');
  });

  it('is gone on with once it was fenced', async () => {
    const { code, stderr } = await runCommand(
      'commands/restore-fence',
      [],
      environment({ DATABASE_URL: url }),
    );
    expect(code, stderr).to.equal(0);
    const service = await start({ DATABASE_URL: url });
    try {
      for (let i = 0; i < 5; i++) issued.push(...(await issueBatch(service, tenant)).entries);
      const names = issued.map(({ listId, idx }) => `${listId} ${idx}`);
      expect(new Set(names).size).to.equal(names.length);
    } finally {
      await service.close();
    }
    expect(await refusal({ DATABASE_URL: url })).to.equal('');
  });
});
