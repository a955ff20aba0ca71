import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { rawSql } from './raw-sql.ts';

/** Of Debian, the newest first; else whatever is in PATH. */
export function folderOfTools(): string {
  const all = '/usr/lib/postgresql';
  const [newest] = existsSync(all) ? readdirSync(all).sort((a, b) => Number(b) - Number(a)) : [];
  return newest === undefined ? '' : join(all, newest, 'bin');
}

/**
 * Whether this machine can dump that database: `pg_dump` refuses a server that is newer than it is. Where it cannot, the reason
 * is said in one line; with `CI=true` it is a failure.
 */
export async function canDump(url: string): Promise<boolean> {
  const fault = await whyNot(url);
  if (fault === undefined) return true;
  if (process.env['CI'] === 'true') throw new Error(`CI needs dumps of PostgreSQL: ${fault}.`);
  console.log(`    dumps of PostgreSQL are skipped: ${fault}`);
  return false;
}

async function whyNot(url: string): Promise<string | undefined> {
  let tool: number;
  try {
    const said = execFileSync(join(folderOfTools(), 'pg_dump'), ['--version'], { encoding: 'utf8' });
    tool = majorOf(said);
  } catch {
    return 'there is no pg_dump';
  }
  let server = 0;
  await rawSql(url, async (run) => {
    const [row] = (await run("select current_setting('server_version') as server_version")) as {
      server_version: string;
    }[];
    server = majorOf(row?.server_version ?? '');
  });
  return server > tool ? `pg_dump is of release ${tool}, and the server of ${server}` : undefined;
}

function majorOf(text: string): number {
  return Number(/\d+/.exec(text)?.[0] ?? Number.NaN);
}
