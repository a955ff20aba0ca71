import type { Cipher } from '../../application/ports/cipher.ts';
import type { Macs } from '../../domain/audit/macs.ts';
import type { Client } from '../../domain/clients/client.ts';
import type { JobSql } from './job-sql.ts';
import type { PostgresSql } from './postgres/sql.ts';
import { CLIENT_COLUMNS, clientOf } from './rows/tenant-columns.ts';
import type { SqliteSql } from './sqlite/sql.ts';
import { namedStatement, type Parameter, type Row } from './statement.ts';

const PURPOSE = 'vidimus/clients';
/** During a rolling upgrade, processes of the previous release write clients without a MAC for at most this long. */
export const ROLLING_UPGRADE_MS = 15 * 60_000;
const SWEEP_EVERY_MS = 30_000;

/** One row records since when every client has a MAC. */
const READ_MARKER = namedStatement('client_macs_marker', 'select since, tolerated_until, code from client_mac_markers');
const PUT_MARKER = `insert into client_mac_markers (id, since, tolerated_until, code) values ('clients', $1, $2, $3)
  on conflict (id) do nothing`;
const PUT_MARKER_POSTGRES = namedStatement('put_client_macs_marker', `${PUT_MARKER} returning 1 as changed`);
const PUT_MARKER_SQLITE = namedStatement('put_client_macs_marker', PUT_MARKER);
const SELECT_ALL = namedStatement('clients_to_protect', `select ${CLIENT_COLUMNS} from clients order by client_id`);
const SELECT_CHANGED = namedStatement(
  'clients_changed_since',
  `select ${CLIENT_COLUMNS} from clients where updated_at >= $1 order by client_id`,
);
const PUT_MAC = namedStatement('put_client_mac', 'update clients set mac = $1 where client_id = $2 and version = $3');
const PAGE = namedStatement('page_client_macs', `select ${CLIENT_COLUMNS} from clients where client_id > $1 order by client_id limit $2`);

/**
 * MACs over the rights and the secret hash of a client, so that write access to the database alone does not grant rights. A row without a
 * valid MAC is ignored. An older row of the same client that is restored has a valid MAC.
 */
export class ClientMacs {
  readonly #macs: Macs;
  /** Time since when clients have MACs; undefined if no service of this release has started on the database. */
  readonly #introducedAt: Date | undefined;
  /** Rows that were written between `#introducedAt` and this time may come from the previous release. */
  readonly #toleratedUntil: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(cipher: Cipher, introducedAt: Date | undefined, toleratedUntil: number) {
    this.#macs = cipher.macs(PURPOSE);
    this.#introducedAt = introducedAt;
    this.#toleratedUntil = toleratedUntil;
  }

  make(client: Client): string {
    return this.#macs.make(textOf(client));
  }

  /** @param mac the stored MAC; null if there is none. */
  isGenuine(client: Client, mac: string | null | undefined): boolean {
    return this.#introducedAt === undefined || this.#isValid(client, mac) || this.#isTolerated(client);
  }

  /** @returns undefined if the service did not write the row. */
  verify(client: Client, mac: string | null | undefined): Client | undefined {
    return this.isGenuine(client, mac) ? client : undefined;
  }

  /** Verifies a row that was selected with `CLIENT_COLUMNS`. */
  verifyRow(row: Row): Client | undefined {
    return this.verify(clientOf(row), row['mac'] as string | null);
  }

  /** Ids of clients whose MAC is invalid. */
  async forged(sql: JobSql): Promise<readonly string[]> {
    const rows = await sql.all(SELECT_ALL);
    return rows.filter((row) => this.verifyRow(row) === undefined).map((row) => String(row['client_id']));
  }

  /** Renews the MACs of valid rows under the current master secret. @returns the number of changed rows. */
  async reseal(sql: JobSql, limit: number, presentKeyId: string): Promise<number> {
    let done = 0;
    let lastClientId = '';
    for (;;) {
      const rows = await sql.all(PAGE, lastClientId, limit);
      for (const row of rows) {
        lastClientId = String(row['client_id']);
        const client = this.verifyRow(row);
        if (client === undefined || String(row['mac'] ?? '').startsWith(`${presentKeyId}.`)) continue;
        done += await sql.change(PUT_MAC, this.make(client), lastClientId, client.version);
      }
      if (rows.length < limit) return done;
    }
  }

  /** Adds MACs to rows of the previous release while they are tolerated. */
  startSweeping(sql: JobSql): void {
    if (this.#introducedAt === undefined || Date.now() >= this.#toleratedUntil) return;
    this.#timer = setInterval(() => void this.#sweep(sql), SWEEP_EVERY_MS);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #sweep(sql: JobSql): Promise<void> {
    if (this.#introducedAt === undefined) return;
    if (Date.now() >= this.#toleratedUntil) {
      this.stop();
      return;
    }
    try {
      for (const row of await sql.all(SELECT_CHANGED, this.#introducedAt.getTime())) {
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
    if (this.#introducedAt === undefined || Date.now() >= this.#toleratedUntil) return false;
    return updatedAt >= this.#introducedAt;
  }
}

const markerText = (introducedAt: number, toleratedUntil: number) => JSON.stringify(['clients', introducedAt, toleratedUntil]);

/** Everything that grants rights. A secret that waits to be picked up is sealed by itself. */
function textOf(client: Client): string {
  const { clientId, tenantId, roles, allowedPresentationConfigs, allowedIssuanceConfigs } = client;
  const { secretHash, secretRevision, formerSecretUntil } = client;
  const formerSecretExpiresAt = formerSecretUntil?.getTime() ?? null;
  return JSON.stringify([
    ...['client', clientId, tenantId, roles, allowedPresentationConfigs, allowedIssuanceConfigs],
    secretHash,
    secretRevision,
    formerSecretExpiresAt,
  ]);
}

/** Time since when clients have MACs, end of the tolerance for rows of the previous release, and the MAC over both. */
type Marker = readonly [number, number, string];

type ClientMacOptions = {
  readonly jobs: JobSql;
  readonly cipher: Cipher;
  /** Adds MACs to all clients and stores the marker in one transaction. */
  readonly adopt: (make: (client: Client) => string, marker: Marker) => Promise<void>;
  /** Processes of the previous release may run beside this one. */
  readonly hasOthers: boolean;
  readonly writes: boolean;
};

/**
 * Clients of earlier releases get their MACs once, at the first start of this release. The marker that records this has a MAC of its own,
 * so its times cannot be changed. Without the marker, rows get MACs only if no row has one, so removing the marker does not turn a forged
 * row into a client.
 */
export async function openClientMacs({ jobs, cipher, adopt, hasOthers, writes }: ClientMacOptions): Promise<ClientMacs> {
  const macs = cipher.macs(PURPOSE);
  const read = async (): Promise<Marker | undefined> => {
    const [row] = await jobs.all(READ_MARKER);
    return row && [Number(row['since']), Number(row['tolerated_until']), String(row['code'])];
  };
  let marker = await read();
  if (marker === undefined && writes) {
    const rows = await jobs.all(SELECT_ALL);
    if (rows.every((row) => row['mac'] === null)) {
      const introducedAt = Date.now();
      const toleratedUntil = introducedAt + (hasOthers && rows.length > 0 ? ROLLING_UPGRADE_MS : 0);
      await adopt(
        (client) => macs.make(textOf(client)),
        [introducedAt, toleratedUntil, macs.make(markerText(introducedAt, toleratedUntil))],
      );
      marker = await read();
    }
  }
  if (marker === undefined) return new ClientMacs(cipher, writes ? new Date(0) : undefined, 0);
  const [introducedAt, toleratedUntil, code] = marker;
  // A marker under a removed secret is so old that nothing is tolerated any more.
  const isValid = macs.checkPresent(markerText(introducedAt, toleratedUntil), code) === 'genuine';
  const clientMacs = new ClientMacs(cipher, new Date(introducedAt), isValid ? toleratedUntil : 0);
  if (writes) clientMacs.startSweeping(jobs);
  return clientMacs;
}

export function adoptOnPostgres(sql: PostgresSql): ClientMacOptions['adopt'] {
  return (make, marker) =>
    sql.transaction(async (tx) => {
      if ((await tx.query(PUT_MARKER_POSTGRES, [...marker])).length === 0) return;
      for (const row of await tx.query(SELECT_ALL, [])) await tx.query(PUT_MAC, macOf(row, make));
    });
}

export function adoptOnSqlite(sql: SqliteSql): ClientMacOptions['adopt'] {
  return (make, marker) =>
    sql.transaction((run) => {
      if (run.change(PUT_MARKER_SQLITE, ...marker) === 0) return;
      for (const row of run.all(SELECT_ALL)) run.change(PUT_MAC, ...macOf(row, make));
    });
}

function macOf(row: Row, make: (client: Client) => string): Parameter[] {
  const client = clientOf(row);
  return [make(client), client.clientId, client.version];
}
