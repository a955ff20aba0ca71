import { existsSync } from 'node:fs';
import { DatabaseNotReady, openDatabase, urlWithoutCredentials } from '../../adapters/persistence/opening/database.ts';
import type { Database } from '../../adapters/persistence/opening/open-driver.ts';
import type { Settings } from '../../config/settings.ts';
import { isLocalHost } from './defaults-check.ts';
import { type Finding, fault, ok, warning } from './finding.ts';

const CHECK = 'database';
/** The tests run on this version and on the next one. */
const OLDEST_VERSION = 15;
const TOLERATED_MS = 60_000;
/** Each process needs these connections besides its pool: for events, migrations and an administrator. */
const SPARE_CONNECTIONS = 5;

export type DatabaseState = {
  readonly findings: readonly Finding[];
  /** True when the database is reachable and has the tables of this release, so that its content can be checked. */
  readonly isUsable: boolean;
};

/** Checks the database and the rights of its user. Nothing is created or changed. */
export async function checkDatabase(settings: Settings, { isStarted }: { readonly isStarted: boolean }): Promise<DatabaseState> {
  const { DATABASE_URL: url, DATABASE_TIMEOUT: timeoutSeconds } = settings;
  const file = url.startsWith('sqlite:') ? url.slice('sqlite:'.length) : undefined;
  if (file !== undefined && !existsSync(file)) {
    const message = `there is no ${file}`;
    const advice = 'the first start creates it; if it existed before, correct DATABASE_URL or DATA_FOLDER';
    return { findings: [isStarted ? warning(CHECK, message, advice) : ok(CHECK, `${message} yet`)], isUsable: false };
  }
  const findings: Finding[] = [];
  try {
    const onConnected = async (database: Database) => {
      const dialectFindings = database.dialect === 'postgres' ? postgresFindings(database, settings) : sqliteFindings(database);
      findings.push(...(await dialectFindings), ...(await clockFindings(database)));
    };
    const database = await openDatabase({ url, poolSize: 2, timeoutSeconds, migrates: false, onConnected });
    await database.close();
  } catch (error) {
    findings.push(failureFinding(error, url));
    return { findings, isUsable: false };
  }
  return { findings, isUsable: !findings.some(({ outcome }) => outcome === 'fault') };
}

function failureFinding(error: unknown, url: string): Finding {
  if (!(error instanceof DatabaseNotReady)) {
    const message = error instanceof Error ? error.message : String(error);
    return fault(CHECK, message, 'see the setting DATABASE_URL in docs/reference/settings.md');
  }
  return error.state === 'empty'
    ? warning(CHECK, `${urlWithoutCredentials(url)} is empty`, 'check DATABASE_URL; the first start creates the tables')
    : warning(
        CHECK,
        `${urlWithoutCredentials(url)} has the tables of an older release`,
        'create a backup, then start the service; see docs/guides/upgrade.md',
      );
}

type Row = Readonly<Record<string, unknown>>;

async function firstRow(database: Database, text: string): Promise<Row> {
  const [row = {}] = await database.all(text);
  return row as Row;
}

const RIGHTS = `select has_schema_privilege(current_schema(), 'CREATE') as creates,
  pg_is_in_recovery() as standby, current_setting('transaction_read_only') as read_only,
  current_setting('server_version_num')::int as version, current_setting('server_version') as named,
  current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int as connections,
  (select ssl from pg_stat_ssl where pid = pg_backend_pid()) as tls,
  (select count(*)::int from pg_class where relnamespace = to_regnamespace(current_schema()) and relkind in ('r', 'p')
    and not pg_has_role(current_user, relowner, 'USAGE')) as foreign_tables,
  (select count(*)::int from pg_class where relnamespace = to_regnamespace(current_schema()) and relkind in ('r', 'p')
    and not (has_table_privilege(oid, 'SELECT') and has_table_privilege(oid, 'INSERT')
      and has_table_privilege(oid, 'UPDATE') and has_table_privilege(oid, 'DELETE'))) as closed_tables,
  (select count(*)::int from pg_proc where pronamespace = to_regnamespace(current_schema())
    and not has_function_privilege(oid, 'EXECUTE')) as closed_functions`;

async function postgresFindings(database: Database, { DATABASE_URL, DATABASE_POOL }: Settings): Promise<Finding[]> {
  const rights = await firstRow(database, RIGHTS);
  const address = urlWithoutCredentials(DATABASE_URL);
  const findings: Finding[] = [];
  const version = Math.floor(Number(rights['version']) / 10_000);
  if (version < OLDEST_VERSION)
    findings.push(
      warning(
        CHECK,
        `${address} is PostgreSQL ${String(rights['named'])}, which is not a tested version`,
        `use ${OLDEST_VERSION} or newer`,
      ),
    );
  if (rights['standby'] === true || rights['read_only'] === 'on')
    findings.push(fault(CHECK, `${address} rejects writes`, 'set DATABASE_URL to the primary'));
  const addFault = (message: string) =>
    findings.push(fault(CHECK, message, 'make the user the owner of the tables of the service: alter table … owner to …'));
  if (rights['creates'] !== true) addFault('the user may not create tables and functions in its schema, which upgrades require');
  if (Number(rights['closed_tables']) > 0) addFault(`the user may not read and write ${String(rights['closed_tables'])} tables`);
  if (Number(rights['closed_functions']) > 0) addFault(`the user may not call ${String(rights['closed_functions'])} functions`);
  if (Number(rights['foreign_tables']) > 0 && findings.length === 0)
    findings.push(
      warning(
        CHECK,
        `${String(rights['foreign_tables'])} tables belong to another user`,
        'make the user of DATABASE_URL their owner, because upgrades change them: alter table … owner to …, or reassign owned by … to …',
      ),
    );
  const connections = Number(rights['connections']);
  if (connections < DATABASE_POOL + SPARE_CONNECTIONS)
    findings.push(
      warning(
        CHECK,
        `it allows ${connections} connections, but DATABASE_POOL is ${DATABASE_POOL} for each start`,
        'lower DATABASE_POOL, or raise max_connections of PostgreSQL',
      ),
    );
  // When TLS is demanded and not available, no connection is made.
  if (rights['tls'] !== true && !isLocalHost(decodeURIComponent(new URL(DATABASE_URL).hostname)))
    findings.push(warning(CHECK, `the connection to ${address} is not encrypted`, 'add ?sslmode=verify-full to DATABASE_URL'));
  return findings.length > 0
    ? findings
    : [ok(CHECK, `${address} is PostgreSQL ${String(rights['named'])}, and accepts the writes of the service`)];
}

async function sqliteFindings(database: Database): Promise<Finding[]> {
  const { version } = await firstRow(database, 'select sqlite_version() as version');
  const { mode } = await firstRow(database, 'select journal_mode as mode from pragma_journal_mode');
  return mode === 'wal'
    ? [ok(CHECK, `SQLite ${String(version)}`)]
    : [
        warning(
          CHECK,
          `SQLite has the journal mode ${String(mode)}`,
          'move the file of DATABASE_URL to a local disk: a network file system cannot share memory',
        ),
      ];
}

const NOW = {
  postgres: 'select (extract(epoch from clock_timestamp()) * 1000)::float8 as now',
  sqlite: "select (julianday('now') - 2440587.5) * 86400000.0 as now",
} as const;

async function clockFindings(database: Database): Promise<Finding[]> {
  const beforeMs = Date.now();
  const { now } = await firstRow(database, NOW[database.dialect]);
  return [checkClock(Number(now), (beforeMs + Date.now()) / 2)];
}

/** Both parameters are milliseconds. */
export function checkClock(database: number, machine: number): Finding {
  const seconds = Math.round((machine - database) / 1000);
  if (Math.abs(machine - database) <= TOLERATED_MS) return ok('clock', `${Math.abs(seconds)} seconds from that of the database`);
  const difference = `${Math.abs(seconds)} seconds ${seconds > 0 ? 'ahead of' : 'behind'} that of the database`;
  return fault(
    'clock',
    `the clock of this machine is ${difference}`,
    'synchronize this machine and that of the database by NTP (timedatectl set-ntp true)',
  );
}
