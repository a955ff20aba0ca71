import { expect } from 'chai';
import { openDatabase } from '../../adapters/persistence/opening/database.ts';
import { databases, rawSql, type TestDatabase } from '../support/databases.ts';
import { distributeTables } from '../support/postgres-server.ts';
import { startTestService } from '../support/test-service.ts';

const postgres = databases().find(({ name }) => name === 'postgres');

describe('database that is distributed over several machines by tenant', () => {
  let database: TestDatabase | undefined;
  before(async function () {
    database = await postgres?.open();
    if (database === undefined) return this.skip();
    const connection = await openDatabase({ url: database.url, poolSize: 2 });
    await connection.close();
    if (connection.isCluster) return;
    console.log('    a cluster of Citus is skipped, set TEST_DATABASE_URL to its coordinator to run it');
    this.skip();
  });
  after(() => database?.drop());
  const databaseUrl = () => database?.url ?? '';

  it('distributes every table with a distributed tenant column, and replicates the others', async () => {
    const rows = await rawSql(databaseUrl(), (run) =>
      run(`select c.relname as name, p.partmethod as method, p.colocationid as place from pg_class c
        left join pg_dist_partition p on p.logicalrelid = c.oid
        where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r' order by 1`),
    );
    const tablesByMethod = (method: string | null) => rows.filter((row) => row['method'] === method).map(({ name }) => name);
    const replicatedTables = ['event_cursors', 'leases', 'retired_keys', 'sealing_keys', 'service_terms'];
    expect(tablesByMethod('n')).to.deep.equal(['client_mac_markers', 'clients', ...replicatedTables]);
    expect(tablesByMethod(null), 'on the first machine alone').to.deep.equal(['schema_migrations']);
    const shards = new Set(rows.filter((row) => row['method'] === 'h').map(({ place }) => place));
    expect(shards.size).to.equal(1);
  });

  it('is distributed again after an upgrade, which changes no existing data', async () => {
    await distributeTables(databaseUrl());
    await distributeTables(databaseUrl());
  });

  it('sends every function to the machine of its tenant', async () => {
    const rows = await rawSql(databaseUrl(), (run) =>
      run(`select f.proname as name, o.distribution_argument_index as place from pg_proc f
        left join pg_catalog.pg_dist_object o on o.objid = f.oid and o.classid = 'pg_proc'::regclass
        where f.pronamespace = current_schema()::regnamespace and 'p_tenant' = any(f.proargnames) order by 1`),
    );
    expect(rows.map(({ name }) => name)).to.include.members(['commit_change_1', 'note_sessions_1']);
    expect(rows.map(({ place }) => place)).to.deep.equal(rows.map(() => 0));
  });

  it('is rejected together with a broker, since its events have no order', async () => {
    let startError: unknown;
    await startTestService({ DATABASE_URL: databaseUrl(), AMQP_URL: 'amqp://127.0.0.1:1' }).catch((error: unknown) => {
      startError = error;
    });
    expect(String(startError)).to.match(/AMQP_URL: .*have no order/);
  });
});
