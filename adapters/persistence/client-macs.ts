import type { Cipher } from '../../application/ports/cipher.ts';
import type { Macs } from '../../domain/audit/macs.ts';
import type { Client } from '../../domain/clients/client.ts';
import type { JobSql } from './job-sql.ts';
import type { PostgresSql } from './postgres/sql.ts';
import { CLIENT_COLUMNS, clientOf } from './rows/tenant-columns.ts';
import type { SqliteSql } from './sqlite/sql.ts';
import { named, type Parameter, type Row } from './statement.ts';

const PURPOSE = 'vidimus/clients';
/** During a rolling upgrade, processes of the release before write clients without a code for at most this long. */
export const ROLLING_UPGRADE_MS = 15 * 60_000;
const SWEEP_EVERY_MS = 30_000;

/** One row says since when every client has a code. */
const READ_MARKER = named('client_macs_marker', 'select since, tolerated_until, code from client_mac_markers');
const PUT_MARKER = `insert into client_mac_markers (id, since, tolerated_until, code) values ('clients', $1, $2, $3)
  on conflict (id) do nothing`;
const PUT_MARKER_POSTGRES = named('put_client_macs_marker', `${PUT_MARKER} returning 1 as changed`);
const PUT_MARKER_SQLITE = named('put_client_macs_marker', PUT_MARKER);
const ALL = named('clients_to_protect', `select ${CLIENT_COLUMNS} from clients order by client_id`);
const CHANGED = named('clients_changed_since', `select ${CLIENT_COLUMNS} from clients where updated_at >= $1 order by client_id`);
const PUT_MAC = named('put_client_mac', 'update clients set mac = $1 where client_id = $2 and version = $3');
const PAGE = named('page_client_macs', `select ${CLIENT_COLUMNS} from clients where client_id > $1 order by client_id limit $2`);

/**
 * Codes over what a client may do and over its secret hash, so that nobody who only writes to the database grants rights.
 * A row without a valid code is no client. An older row of the same client that is put back has a valid code.
 */
export class ClientMacs {
  readonly #macs: Macs;
  /** Since when clients have codes; undefined in a database that no service of this release has started on. */
  readonly #since: Date | undefined;
  /** Rows that were written between `#since` and this time may be of the release before. */
  readonly #toleratedUntil: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(cipher: Cipher, since: Date | undefined, toleratedUntil: number) {
    this.#macs = cipher.macs(PURPOSE);
    this.#since = since;
    this.#toleratedUntil = toleratedUntil;
  }

  make(client: Client): string {
    return this.#macs.make(textOf(client));
  }

  /** @param mac as it is stored; null for none. */
  isGenuine(client: Client, mac: string | null | undefined): boolean {
    return this.#since === undefined || this.#isValid(client, mac) || this.#isTolerated(client);
  }

  /** @returns undefined for a row that something else than the service wrote. */
  verify(client: Client, mac: string | null | undefined): Client | undefined {
    return this.isGenuine(client, mac) ? client : undefined;
  }

  /** The same for a row that `CLIENT_COLUMNS` select. */
  verifyRow(row: Row): Client | undefined {
    return this.verify(clientOf(row), row['mac'] as string | null);
  }

  /** Ids of clients whose code is not valid. */
  async forged(sql: JobSql): Promise<readonly string[]> {
    const rows = await sql.all(ALL);
    return rows.filter((row) => this.verifyRow(row) === undefined).map((row) => String(row['client_id']));
  }

  /** Makes the codes of valid rows anew under the present master secret. @returns how many changed. */
  async reseal(sql: JobSql, limit: number, presentKeyId: string): Promise<number> {
    let done = 0;
    let last = '';
    for (;;) {
      const rows = await sql.all(PAGE, last, limit);
      for (const row of rows) {
        last = String(row['client_id']);
        const client = this.verifyRow(row);
        if (client === undefined || String(row['mac'] ?? '').startsWith(`${presentKeyId}.`)) continue;
        done += await sql.change(PUT_MAC, this.make(client), last, client.version);
      }
      if (rows.length < limit) return done;
    }
  }

  /** While rows of the release before are tolerated, they get their codes. */
  startSweeping(sql: JobSql): void {
    if (this.#since === undefined || Date.now() >= this.#toleratedUntil) return;
    this.#timer = setInterval(() => void this.#sweep(sql), SWEEP_EVERY_MS);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #sweep(sql: JobSql): Promise<void> {
    if (this.#since === undefined) return;
    if (Date.now() >= this.#toleratedUntil) {
      this.stop();
      return;
    }
    try {
      for (const row of await sql.all(CHANGED, this.#since.getTime())) {
        const client = this.verifyRow(row);
        if (client === undefined || this.#isValid(client, row['mac'] as string | null)) continue;
        await sql.change(PUT_MAC, this.make(client), client.clientId, client.version);
      }
    } catch {
      // The database did not answer; the next sweep tries again.
    }
  }

  #isValid(client: Client, mac: string | null | undefined): boolean {
    return typeof mac === 'string' && this.#macs.checkPresent(textOf(client), mac) === 'genuine';
  }

  #isTolerated({ updatedAt }: Client): boolean {
    if (this.#since === undefined || Date.now() >= this.#toleratedUntil) return false;
    return updatedAt >= this.#since;
  }
}

const markerText = (since: number, until: number) => JSON.stringify(['clients', since, until]);

/** Everything that grants something. What waits to be picked up is sealed by itself. */
function textOf(client: Client): string {
  const { clientId, tenantId, roles, allowedPresentationConfigs, allowedIssuanceConfigs } = client;
  const { secretHash, secretRevision, formerSecretUntil } = client;
  const until = formerSecretUntil?.getTime() ?? null;
  return JSON.stringify([
    ...['client', clientId, tenantId, roles, allowedPresentationConfigs, allowedIssuanceConfigs],
    secretHash,
    secretRevision,
    until,
  ]);
}

/** Since when, until when rows of the release before are tolerated, and the code over both. */
type Marker = readonly [number, number, string];

type Opening = {
  readonly jobs: JobSql;
  readonly cipher: Cipher;
  /** Gives all clients their codes and puts the marker, in one transaction. */
  readonly adopt: (make: (client: Client) => string, marker: Marker) => Promise<void>;
  /** Whether processes of the release before may run beside this one. */
  readonly hasOthers: boolean;
  readonly writes: boolean;
};

/**
 * Clients of earlier releases get their codes once, at the first start of this release. The marker of that has a code of
 * its own, so a later time cannot be written into it; without the marker, and with any code in the database, no row gets
 * one, so that removing both from the database makes nobody a client.
 */
export async function openClientMacs({ jobs, cipher, adopt, hasOthers, writes }: Opening): Promise<ClientMacs> {
  const macs = cipher.macs(PURPOSE);
  const read = async (): Promise<Marker | undefined> => {
    const [row] = await jobs.all(READ_MARKER);
    return row && [Number(row['since']), Number(row['tolerated_until']), String(row['code'])];
  };
  let marker = await read();
  if (marker === undefined && writes) {
    const rows = await jobs.all(ALL);
    if (rows.every((row) => row['mac'] === null)) {
      const since = Date.now();
      const until = since + (hasOthers && rows.length > 0 ? ROLLING_UPGRADE_MS : 0);
      await adopt((client) => macs.make(textOf(client)), [since, until, macs.make(markerText(since, until))]);
      marker = await read();
    }
  }
  if (marker === undefined) return new ClientMacs(cipher, writes ? new Date(0) : undefined, 0);
  const [since, until, code] = marker;
  // A marker under a secret that was dropped is so old that nothing is tolerated any more.
  const isValid = macs.checkPresent(markerText(since, until), code) === 'genuine';
  const opened = new ClientMacs(cipher, new Date(since), isValid ? until : 0);
  if (writes) opened.startSweeping(jobs);
  return opened;
}

export function adoptOnPostgres(sql: PostgresSql): Opening['adopt'] {
  return (make, marker) =>
    sql.transaction(async (own) => {
      if ((await own.query(PUT_MARKER_POSTGRES, [...marker])).length === 0) return;
      for (const row of await own.query(ALL, [])) await own.query(PUT_MAC, macOf(row, make));
    });
}

export function adoptOnSqlite(sql: SqliteSql): Opening['adopt'] {
  return (make, marker) =>
    sql.transaction((run) => {
      if (run.change(PUT_MARKER_SQLITE, ...marker) === 0) return;
      for (const row of run.all(ALL)) run.change(PUT_MAC, ...macOf(row, make));
    });
}

function macOf(row: Row, make: (client: Client) => string): Parameter[] {
  const client = clientOf(row);
  return [make(client), client.clientId, client.version];
}
