import type { Cipher } from '../../../application/ports/cipher.ts';
import type { Maintenance, ResealCursor } from '../../../application/ports/maintenance.ts';
import { sealHead, verifyHead } from '../../../domain/audit/chain.ts';
import type { KeyChain } from '../../../domain/keys/key-chain.ts';
import { DOCUMENTS } from '../../../domain/resources.ts';
import { parseJsonObject } from '../../../domain/shared/json.ts';
import { currentSealPrefix, resealText, withResealedKeys } from '../administration/sealed-keys.ts';
import { AUDIT_LOG, auditKeyContext } from '../audit-keys.ts';
import type { ClientMacs } from '../client-macs.ts';
import type { JobSql } from '../job-sql.ts';
import { AUTHORIZATIONS, DEFERRED } from '../rows/authorization-codec.ts';
import { decodeDocument, encodeDocument } from '../rows/document-codec.ts';
import { documentContext, tableOf } from '../rows/document-tables.ts';
import { GRANTS, SESSIONS, STATUS_LISTS, STORED_RESPONSES } from '../rows/session-codec.ts';
import { SUBJECT_KEYS } from '../rows/subject-codec.ts';
import { FOLLOWED_LISTS } from '../rows/wallet-status-codec.ts';
import { namedStatement, type Row, type Statement } from '../statement.ts';
import { STORED_TRUST_LISTS } from '../stored-trust-lists.ts';

type SealedColumn = {
  readonly table: string;
  readonly key: readonly string[];
  readonly column: string;
  readonly context: (row: Row) => string;
  /** Reseals the texts that are nested in the opened text. */
  readonly inside?: (opened: string, cipher: Cipher) => string;
};

const OF_TENANT = ['tenant_id', 'id'];
const contextOf = (table: string, column: string) => (row: Row) => `${table}/${column}/${row['tenant_id']}/${row['id']}`;
const column = (table: string, name: string): SealedColumn => ({ table, key: OF_TENANT, column: name, context: contextOf(table, name) });

/** Every sealed column; `test/deep/reseal.test.ts` looks for others in a full database. */
const SEALED: readonly SealedColumn[] = [
  ...DOCUMENTS.map(
    ({ kind }): SealedColumn => ({
      table: tableOf(kind),
      key: OF_TENANT,
      column: 'body',
      context: (row) => documentContext(tableOf(kind), String(row['tenant_id']), String(row['id'])),
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
  column(STORED_RESPONSES.name, 'said'),
  column(AUTHORIZATIONS.name, 'document'),
  column(DEFERRED.name, 'credentials'),
  column(DEFERRED.name, 'error_message'),
  column(DEFERRED.name, 'wallet_statuses'),
  column(FOLLOWED_LISTS.name, 'place'),
  column(SUBJECT_KEYS.name, 'secret'),
  column(STORED_TRUST_LISTS.name, 'place'),
  column(STORED_TRUST_LISTS.name, 'copy'),
  column(STORED_TRUST_LISTS.name, 'finding'),
  { table: 'sealing_keys', key: ['id'], column: 'audit_key', context: (row) => auditKeyContext(String(row['id'])) },
];

type Statements = { readonly count: Statement; readonly page: Statement; readonly put: Statement };

const numbered = (columns: readonly string[], from: number) => columns.map((_, index) => `$${index + from}`).join(', ');

/** `$1` is the prefix of texts that are sealed under the current secret. */
function statementsOf({ table, key, column: name, inside }: SealedColumn): Statements {
  const keys = key.join(', ');
  const pending = `${name} is not null and substr(${name}, 1, length($1)) <> $1`;
  // Earlier releases wrote key chains under the current secret with keys within them under a former one.
  const candidates = inside === undefined ? pending : `${name} is not null and $1 <> ''`;
  return {
    count: { name: `count_sealed_${table}_${name}`, text: `select count(*) as count from ${table} where ${pending}` },
    page: {
      name: `page_sealed_${table}_${name}`,
      text: `select ${keys}, ${name} as sealed from ${table}
        where ${candidates} and (${keys}) > (${numbered(key, 3)}) order by ${keys} limit $2`,
    },
    put: {
      name: `put_sealed_${table}_${name}`,
      text: `update ${table} set ${name} = $1 where ${name} = $2 and (${keys}) = (${numbered(key, 3)})`,
    },
  };
}

const COLUMNS = SEALED.map((sealed) => ({ ...sealed, ...statementsOf(sealed) }));
/** Secrets that wait to be picked up are part of a document that is not sealed as a whole. */
const PICK_UPS = {
  all: {
    name: 'page_pick_ups',
    text: 'select client_id, pick_up, version from clients where pick_up is not null and client_id > $1 order by client_id limit $2',
  },
  put: { name: 'put_pick_up', text: 'update clients set pick_up = $1 where client_id = $2 and version = $3' },
};

/** Heads of audit chains have a MAC of the current secret, too. */
const HEADS = {
  page: namedStatement(
    'page_heads',
    `select tenant_id, sequence, hash, seal from audit_heads
     where (tenant_id > $1 or $3 = 'first') order by tenant_id limit $2`,
  ),
  put: namedStatement(
    'put_head_seal',
    'update audit_heads set seal = $1 where tenant_id = $2 and sequence = $3 and hash = $4 and seal = $5',
  ),
};
const RESEALED = namedStatement('resealed_keys', 'select id from sealing_keys where resealed_at is not null');
const KEEP = namedStatement('keep_sealing', 'update sealing_keys set resealed_at = null where id = $1 and resealed_at is not null');
const END = namedStatement('end_reseal', 'update sealing_keys set resealed_at = $1, audit_key = $2 where id = $3 and resealed_at is null');

/** Reseals texts of former secrets under the current one, row by row and beside concurrent writers. */
export function resealing(
  sql: JobSql,
  cipher: Cipher,
  clientMacs: ClientMacs,
): Pick<Maintenance, 'pendingReseals' | 'reseal' | 'endReseal' | 'keepSealing' | 'resealedKeys'> {
  const currentPrefix = currentSealPrefix(cipher);

  async function pickUps(limit: number): Promise<number> {
    let done = 0;
    let lastClientId = '';
    for (;;) {
      const rows = await sql.all(PICK_UPS.all, lastClientId, limit);
      for (const row of rows) {
        lastClientId = String(row['client_id']);
        const pickUp = row['pick_up'];
        const text = typeof pickUp === 'string' ? pickUp : JSON.stringify(pickUp);
        const { sealedSecret } = parseJsonObject(text) ?? {};
        if (typeof sealedSecret !== 'string' || sealedSecret === '') continue;
        const resealedSecret = resealText(cipher, sealedSecret, `clients/pick_up/${lastClientId}`);
        if (resealedSecret === sealedSecret) continue;
        done += await sql.change(PICK_UPS.put, text.replace(sealedSecret, resealedSecret), lastClientId, Number(row['version']));
      }
      if (rows.length < limit) return done;
    }
  }

  /** A head with an invalid MAC stays unchanged, so that verification of the log reports it. */
  async function heads(limit: number): Promise<number> {
    const macs = cipher.macs(AUDIT_LOG);
    let done = 0;
    let lastScope = '';
    // The chain of the service has an empty name, so the first page needs a condition of its own.
    for (let page = 'first'; ; page = 'next') {
      const rows = await sql.all(HEADS.page, lastScope, limit, page);
      for (const row of rows) {
        lastScope = String(row['tenant_id']);
        const head = { sequence: Number(row['sequence']), hash: String(row['hash']), seal: String(row['seal']) };
        if (head.seal.startsWith(`${cipher.keyIds[0]}.`) || verifyHead(macs, lastScope, head) !== 'genuine') continue;
        const { seal } = sealHead(macs, lastScope, head);
        done += await sql.change(HEADS.put, seal, lastScope, head.sequence, head.hash, head.seal);
      }
      if (rows.length < limit) return done;
    }
  }

  return {
    async pendingReseals() {
      let count = 0;
      for (const each of COLUMNS) count += Number((await sql.all(each.count, currentPrefix))[0]?.['count']);
      return count;
    },
    async reseal(limit, position) {
      const index = position?.column ?? 0;
      const sealed = COLUMNS[index];
      if (sealed === undefined)
        return {
          done: (await pickUps(limit)) + (await heads(limit)) + (await clientMacs.reseal(sql, limit, cipher.keyIds[0])),
          nextCursor: undefined,
        };
      const from = position?.key ?? sealed.key.map((name) => (name === 'sequence_number' ? -1 : ''));
      const rows = await sql.all(sealed.page, currentPrefix, limit, ...from);
      let done = 0;
      for (const row of rows) {
        const context = sealed.context(row);
        const text = String(row['sealed']);
        const plaintext = cipher.open(text, context);
        const resealed = sealed.inside?.(plaintext.toString('utf8'), cipher) ?? plaintext;
        if (text.startsWith(currentPrefix) && resealed.toString() === plaintext.toString('utf8')) continue;
        const key = sealed.key.map((name) => row[name] as string | number);
        done += await sql.change(sealed.put, cipher.seal(resealed, context), text, ...key);
      }
      return { done, nextCursor: positionAfter(index, sealed.key, rows, limit) };
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
        const key = cipher.seal(cipher.macKey(AUDIT_LOG, id), auditKeyContext(id));
        ended += await sql.change(END, now.getTime(), key, id);
      }
      return ended;
    },
  };
}

function positionAfter(index: number, key: readonly string[], rows: readonly Row[], limit: number): ResealCursor {
  const lastRow = rows.length < limit ? undefined : rows.at(-1);
  if (lastRow === undefined) return { column: index + 1 };
  return { column: index, key: key.map((name) => lastRow[name] as string | number) };
}

function withKeys(plaintext: string, cipher: Cipher): string {
  return encodeDocument(withResealedKeys(cipher, decodeDocument<KeyChain>(plaintext)));
}
