import type { Cipher } from '../../../application/ports/cipher.ts';
import type { Maintenance, ResealPlace } from '../../../application/ports/maintenance.ts';
import { sealHead, verifyHead } from '../../../domain/audit/chain.ts';
import type { KeyChain } from '../../../domain/keys/key-chain.ts';
import { DOCUMENTS } from '../../../domain/resources.ts';
import { parseJsonObject } from '../../../domain/shared/json.ts';
import { presentPrefix, sealedAnew, withKeysSealedAnew } from '../administration/sealed-keys.ts';
import { AUDIT_LOG, auditKeyPlace } from '../audit-keys.ts';
import type { ClientMacs } from '../client-macs.ts';
import type { JobSql } from '../job-sql.ts';
import { KEPT_TRUST_LISTS } from '../kept-trust-lists.ts';
import { AUTHORIZATIONS, DEFERRED } from '../rows/authorization-codec.ts';
import { decodeDocument, encodeDocument } from '../rows/document-codec.ts';
import { placeOf, tableOf } from '../rows/document-tables.ts';
import { GRANTS, KEPT_ANSWERS, SESSIONS, STATUS_LISTS } from '../rows/session-codec.ts';
import { SUBJECT_KEYS } from '../rows/subject-codec.ts';
import { FOLLOWED_LISTS } from '../rows/wallet-status-codec.ts';
import { named, type Row, type Statement } from '../statement.ts';

/** A column with sealed texts. */
type SealedColumn = {
  readonly table: string;
  /** Of the primary key, in its order. */
  readonly key: readonly string[];
  readonly column: string;
  /** Where a text of this row is sealed. */
  readonly context: (row: Row) => string;
  /** The opened text with what is sealed within it under the present secret, too. */
  readonly inside?: (opened: string, cipher: Cipher) => string;
};

const OF_TENANT = ['tenant_id', 'id'];
const contextOf = (table: string, column: string) => (row: Row) => `${table}/${column}/${row['tenant_id']}/${row['id']}`;
const column = (table: string, name: string): SealedColumn => ({ table, key: OF_TENANT, column: name, context: contextOf(table, name) });

/** Every column that is sealed; `test/deep/reseal.test.ts` looks for others in a full database. */
const SEALED: readonly SealedColumn[] = [
  ...DOCUMENTS.map(
    ({ kind }): SealedColumn => ({
      table: tableOf(kind),
      key: OF_TENANT,
      column: 'body',
      context: (row) => placeOf(tableOf(kind), String(row['tenant_id']), String(row['id'])),
      ...(kind === 'key-chain' && { inside: withKeys }),
    }),
  ),
  column('trust_lists', 'body'),
  {
    table: 'trust_list_versions',
    key: ['tenant_id', 'trust_list_id', 'sequence_number'],
    column: 'body',
    context: (row) => `trust_list_versions/body/${row['tenant_id']}/${row['trust_list_id']}/${row['sequence_number']}`,
  },
  column(STATUS_LISTS.name, 'secret'),
  column(SESSIONS.name, 'request'),
  column(SESSIONS.name, 'outcome'),
  column(GRANTS.name, 'document'),
  column(KEPT_ANSWERS.name, 'said'),
  column(AUTHORIZATIONS.name, 'document'),
  column(DEFERRED.name, 'credentials'),
  column(DEFERRED.name, 'error_message'),
  column(DEFERRED.name, 'wallet_statuses'),
  column(FOLLOWED_LISTS.name, 'place'),
  column(SUBJECT_KEYS.name, 'secret'),
  column(KEPT_TRUST_LISTS.name, 'place'),
  column(KEPT_TRUST_LISTS.name, 'copy'),
  column(KEPT_TRUST_LISTS.name, 'finding'),
  { table: 'sealing_keys', key: ['id'], column: 'audit_key', context: (row) => auditKeyPlace(String(row['id'])) },
];

type Statements = { readonly count: Statement; readonly page: Statement; readonly put: Statement };

const numbered = (columns: readonly string[], from: number) => columns.map((_, index) => `$${index + from}`).join(', ');

/** `$1` is how a text begins that is sealed under the present secret. */
function statementsOf({ table, key, column: name, inside }: SealedColumn): Statements {
  const keys = key.join(', ');
  const pending = `${name} is not null and substr(${name}, 1, length($1)) <> $1`;
  // Earlier releases wrote key chains under the present secret and carried on keys within them under a former one.
  const looked = inside === undefined ? pending : `${name} is not null and $1 <> ''`;
  return {
    count: {
      name: `count_sealed_${table}_${name}`,
      text: `select count(*) as count from ${table} where ${pending}`,
    },
    page: {
      name: `page_sealed_${table}_${name}`,
      text: `select ${keys}, ${name} as sealed from ${table}
        where ${looked} and (${keys}) > (${numbered(key, 3)}) order by ${keys} limit $2`,
    },
    put: {
      name: `put_sealed_${table}_${name}`,
      text: `update ${table} set ${name} = $1 where ${name} = $2 and (${keys}) = (${numbered(key, 3)})`,
    },
  };
}

const COLUMNS = SEALED.map((sealed) => ({ ...sealed, ...statementsOf(sealed) }));
/** Secrets that wait to be picked up stand in a document that is not sealed as a whole. */
const PICK_UPS = {
  all: {
    name: 'page_pick_ups',
    text: 'select client_id, pick_up, version from clients where pick_up is not null and client_id > $1 order by client_id limit $2',
  },
  put: { name: 'put_pick_up', text: 'update clients set pick_up = $1 where client_id = $2 and version = $3' },
};

/** The ends of the chains of the audit log are under a code of the present secret, too. */
const HEADS = {
  page: named(
    'page_heads',
    `select tenant_id, sequence, hash, seal from audit_heads
     where (tenant_id > $1 or $3 = 'first') order by tenant_id limit $2`,
  ),
  put: named('put_head_seal', 'update audit_heads set seal = $1 where tenant_id = $2 and sequence = $3 and hash = $4 and seal = $5'),
};
const RESEALED = named('resealed_keys', 'select id from sealing_keys where resealed_at is not null');
const KEEP = named('keep_sealing', 'update sealing_keys set resealed_at = null where id = $1 and resealed_at is not null');
const END = named('end_reseal', 'update sealing_keys set resealed_at = $1, audit_key = $2 where id = $3 and resealed_at is null');

/** Seals under the present secret what is sealed under a former one, row by row, beside what writes meanwhile. */
export function resealing(
  sql: JobSql,
  cipher: Cipher,
  clientMacs: ClientMacs,
): Pick<Maintenance, 'pendingReseals' | 'reseal' | 'endReseal' | 'keepSealing' | 'resealedKeys'> {
  const present = presentPrefix(cipher);

  async function pickUps(limit: number): Promise<number> {
    let done = 0;
    let last = '';
    for (;;) {
      const rows = await sql.all(PICK_UPS.all, last, limit);
      for (const row of rows) {
        last = String(row['client_id']);
        const found = row['pick_up'];
        const text = typeof found === 'string' ? found : JSON.stringify(found);
        const { sealedSecret } = parseJsonObject(text) ?? {};
        if (typeof sealedSecret !== 'string' || sealedSecret === '') continue;
        const anew = sealedAnew(cipher, sealedSecret, `clients/pick_up/${last}`);
        if (anew === sealedSecret) continue;
        done += await sql.change(PICK_UPS.put, text.replace(sealedSecret, anew), last, Number(row['version']));
      }
      if (rows.length < limit) return done;
    }
  }

  /** A head that is not ours stays as it is, for those who verify the log. */
  async function heads(limit: number): Promise<number> {
    const macs = cipher.macs(AUDIT_LOG);
    let done = 0;
    let last = '';
    // The chain of the service has an empty name.
    for (let page = 'first'; ; page = 'next') {
      const rows = await sql.all(HEADS.page, last, limit, page);
      for (const row of rows) {
        last = String(row['tenant_id']);
        const head = { sequence: Number(row['sequence']), hash: String(row['hash']), seal: String(row['seal']) };
        if (head.seal.startsWith(`${cipher.keyIds[0]}.`) || verifyHead(macs, last, head) !== 'genuine') continue;
        const { seal } = sealHead(macs, last, head);
        done += await sql.change(HEADS.put, seal, last, head.sequence, head.hash, head.seal);
      }
      if (rows.length < limit) return done;
    }
  }

  return {
    async pendingReseals() {
      let count = 0;
      for (const each of COLUMNS) count += Number((await sql.all(each.count, present))[0]?.['count']);
      return count;
    },
    async reseal(limit, place) {
      const index = place?.column ?? 0;
      const sealed = COLUMNS[index];
      if (sealed === undefined)
        return {
          done: (await pickUps(limit)) + (await heads(limit)) + (await clientMacs.reseal(sql, limit, cipher.keyIds[0])),
          place: undefined,
        };
      const from = place?.key ?? sealed.key.map((name) => (name === 'sequence_number' ? -1 : ''));
      const rows = await sql.all(sealed.page, present, limit, ...from);
      let done = 0;
      for (const row of rows) {
        const context = sealed.context(row);
        const text = String(row['sealed']);
        const opened = cipher.open(text, context);
        const changed = sealed.inside?.(opened.toString('utf8'), cipher) ?? opened;
        if (text.startsWith(present) && changed.toString() === opened.toString('utf8')) continue;
        const key = sealed.key.map((name) => row[name] as string | number);
        done += await sql.change(sealed.put, cipher.seal(changed, context), text, ...key);
      }
      return { done, place: placeAfter(index, sealed.key, rows, limit) };
    },
    async keepSealing() {
      await sql.change(KEEP, cipher.keyIds[0]);
    },
    async resealedKeys() {
      const rows = await sql.all(RESEALED);
      return rows.map((row) => String(row['id']));
    },
    async endReseal(now) {
      let ended = 0;
      for (const id of cipher.keyIds.slice(1)) {
        const key = cipher.seal(cipher.macKey(AUDIT_LOG, id), auditKeyPlace(id));
        ended += await sql.change(END, now.getTime(), key, id);
      }
      return ended;
    },
  };
}

function placeAfter(index: number, key: readonly string[], rows: readonly Row[], limit: number): ResealPlace {
  const last = rows.length < limit ? undefined : rows.at(-1);
  if (last === undefined) return { column: index + 1 };
  return { column: index, key: key.map((name) => last[name] as string | number) };
}

function withKeys(opened: string, cipher: Cipher): string {
  return encodeDocument(withKeysSealedAnew(cipher, decodeDocument<KeyChain>(opened)));
}
