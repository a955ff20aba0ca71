import { readFileSync } from 'node:fs';
import { rawSql } from './raw-sql.ts';

const SPREAD = new URL('../../deploy/citus.sql', import.meta.url);

/** @returns the machines of a cluster that spreads tables (Citus), the one that is asked first; undefined for a server that is no part of one. */
export async function nodesOf(server: string): Promise<readonly [URL, ...URL[]] | undefined> {
  return rawSql(server, async (run) => {
    const [found] = await run(`select to_regclass('pg_catalog.pg_dist_node') is not null as cluster`);
    if (found?.['cluster'] !== true) return undefined;
    const rows = await run('select nodename as host, nodeport as port from pg_dist_node order by groupid');
    const [first, ...workers] = rows.map(({ host, port }) =>
      Object.assign(new URL(server), { hostname: String(host), port: String(port) }),
    );
    return first !== undefined && workers.length > 0 ? [first, ...workers] : undefined;
  });
}

export const databaseOn = (node: URL, name: string) =>
  Object.assign(new URL(node), { pathname: `/${name}` }).href;

/** Makes an empty database that all machines have a part of. @returns its address on the first. */
export async function createOnAll(nodes: readonly [URL, ...URL[]], name: string): Promise<string> {
  const [first, ...workers] = nodes;
  for (const node of nodes) {
    await rawSql(node.href, (run) => run(`create database ${name}`));
    await rawSql(databaseOn(node, name), (run) => run('create extension citus'));
  }
  const url = databaseOn(first, name);
  await rawSql(url, async (run) => {
    await run(`select citus_set_coordinator_host('${first.hostname}', ${first.port})`);
    for (const { hostname, port } of workers) await run(`select citus_add_node('${hostname}', ${port})`);
  });
  return url;
}

/** Runs `deploy/citus.sql`. */
export async function spread(url: string): Promise<void> {
  const statements = readFileSync(SPREAD, 'utf8')
    .replace(/^--.*$/gm, '')
    .split(/;\s*$/m);
  await rawSql(url, async (run) => {
    for (const statement of statements) if (statement.trim() !== '') await run(statement);
  });
}

export async function dropOnAll(nodes: readonly URL[], name: string): Promise<void> {
  for (const node of nodes) {
    await rawSql(node.href, (run) => run(`drop database if exists ${name} with (force)`));
  }
}
