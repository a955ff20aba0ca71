import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { DatabaseKind, TestDatabase } from './databases.ts';
import { rawSql } from './raw-sql.ts';

/** The coordinator of a cluster that is there already; without it nothing is tried on one. */
export const CLUSTER = process.env['TEST_CITUS_URL'];

const SPREAD = new URL('../../deploy/citus.sql', import.meta.url);

/** The nodes that the coordinator knows in its own database, itself first. */
async function nodesOf(coordinator: string): Promise<URL[]> {
  const rows = await rawSql(coordinator, (run) =>
    run('select nodename as host, nodeport as port from pg_dist_node where isactive order by groupid'),
  );
  return rows.map((row) => {
    const url = new URL(coordinator);
    url.hostname = String(row['host']);
    url.port = String(row['port']);
    return url;
  });
}

async function openOnCluster(migrate: (url: string) => Promise<void>): Promise<TestDatabase | undefined> {
  if (CLUSTER === undefined) return undefined;
  const nodes = await nodesOf(CLUSTER);
  const name = `vidimus_test_${randomBytes(6).toString('hex')}`;
  const own = (node: URL) => Object.assign(new URL(node), { pathname: `/${name}` }).href;
  for (const node of nodes) {
    await rawSql(node.href, (run) => run(`create database ${name}`));
    await rawSql(own(node), (run) => run('create extension citus'));
  }
  const [first, ...workers] = nodes as [URL, ...URL[]];
  const url = own(first);
  await rawSql(url, async (run) => {
    await run(`select citus_set_coordinator_host('${first.hostname}', ${first.port})`);
    for (const { hostname, port } of workers) await run(`select citus_add_node('${hostname}', ${port})`);
  });
  await migrate(url);
  await spread(url, name);
  return {
    url,
    drop: async () => {
      for (const node of nodes) {
        await rawSql(node.href, (run) => run(`drop database if exists ${name} with (force)`));
      }
    },
  };
}

/** What `psql` would do. */
async function spread(url: string, name: string): Promise<void> {
  const text = readFileSync(SPREAD, 'utf8')
    .replace(/^--.*$/gm, '')
    .replaceAll(':"DBNAME"', `"${name}"`);
  await rawSql(url, async (run) => {
    for (const statement of text.split(/;\s*$/m)) if (statement.trim() !== '') await run(statement);
  });
}

export function citus(migrate: (url: string) => Promise<void>): DatabaseKind {
  const open = () => openOnCluster(migrate);
  return {
    name: 'postgres',
    open,
    openEmpty: open,
    copy: () => Promise.reject(new Error('a cluster is not copied')),
  };
}
