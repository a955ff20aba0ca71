import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { migrate, type PreparedDatabases, setPreparedDatabases } from './databases.ts';
import { findServer, rawSql } from './postgres-server.ts';

let folder: string | undefined;
let postgres: PreparedDatabases['postgres'] = null;

/** Runs once before the test processes start. */
export async function mochaGlobalSetup(): Promise<void> {
  folder = mkdtempSync(join(tmpdir(), 'vidimus-test-'));
  const sqlite = join(folder, 'template.sqlite');
  const [server] = await Promise.all([findServer(), migrate(`sqlite:${sqlite}`)]);
  postgres = server === undefined ? null : await makeTemplate(server);
  setPreparedDatabases({ sqlite, postgres });
}

export async function mochaGlobalTeardown(): Promise<void> {
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  const preparedDatabases = postgres;
  if (preparedDatabases !== null) await rawSql(preparedDatabases.server, (runSql) => runSql(`drop database ${preparedDatabases.template}`));
}

async function makeTemplate(server: string): Promise<{ server: string; template: string }> {
  const template = `vidimus_template_${randomBytes(6).toString('hex')}`;
  await rawSql(server, (runSql) => runSql(`create database ${template}`));
  const url = new URL(server);
  url.pathname = `/${template}`;
  await migrate(url.href);
  return { server, template };
}
