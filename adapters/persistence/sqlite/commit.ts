import type { Cipher } from '../../../application/ports/cipher.ts';
import type { Change, Committed, Part } from '../../../domain/changes/change.ts';
import type { UsedValue } from '../../../domain/oauth/used-value.ts';
import type { Session } from '../../../domain/sessions/session.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { SERVING } from '../../../domain/tenants/tenant.ts';
import {
  authorizationColumns,
  type Columns,
  deferredChangeColumns,
  grantChangeColumns,
  issuedColumns,
  newDeferredColumns,
  newGrantColumns,
  newSessionColumns,
  sessionChangeColumns,
  statusColumns,
  usedValueColumns,
} from '../rows/change-columns.ts';
import { readRevisions } from '../rows/session-codec.ts';
import type { Statement } from '../statement.ts';
import type { SqliteChain } from './audit-chain.ts';
import type { SqliteRun, SqliteSql } from './sql.ts';

const named = (name: string, text: string): Statement => ({ name, text });
const places = (count: number) => Array.from({ length: count }, (_, index) => `$${index + 1}`).join(', ');
const insert = (table: string, columns: string, otherwise = '') =>
  named(
    `new_${table}`,
    `insert into ${table} (${columns}) values (${places(columns.split(',').length)}) ${otherwise}`,
  );

// `$1` is the tenant throughout, `$2` the time; columns of the part follow in the order of change-columns.ts.
const TENANT = named('tenant', 'select status, revisions from tenants where id = $1');
const GRANT = named(
  'grant_change',
  `update grants set
     consumed_at = case when $9 then $2 else consumed_at end, holder = coalesce($10, holder),
     expires_at = coalesce($11, expires_at), attempts = attempts + $12, generation = generation + $13,
     revoked_at = case when $14 then $2 else revoked_at end
   where tenant_id = $1 and id = $3 and ($4 is null or (consumed_at is not null) = $4)
     and (not $5 or expires_at > $2) and (not $6 or revoked_at is null)
     and ($7 is null or attempts < $7) and ($8 is null or generation = $8)`,
);
const IN = (list: string) => `in (select value from json_each(${list}))`;
const FIND_SESSION = named(
  'session_change_finds',
  `select s.status as was, s.status ${IN('$19')} and (s.issued_mask | $17) = $18 as completes
   from sessions s where s.tenant_id = $1 and s.id = $3
     and (s.status ${IN('$6')} or s.status ${IN('$5')} and s.expires_at > $2)
     and ($7 is null or s.version = $7) and (not $8 or s.claimed_at is null) and (s.revoked_mask & $9) = 0
     and ($10 is null or s.issued_count < $10) and ($12 is null or s.issued_count = $12)
     and ($11 is null or $11 > (select count(*) from deferred_transactions d
       where d.tenant_id = s.tenant_id and d.session_id = s.id))`,
);
/** `$26`: whether it completes. */
const CHANGE_SESSION = named(
  'session_change',
  `update sessions set
     status = coalesce($13, case when $26 then $20 else status end),
     version = version + ($26 or $25),
     updated_at = case when $24 then $2 else updated_at end,
     expires_at = max(expires_at, coalesce($23, expires_at)),
     claimed_at = case when $14 then $2 else claimed_at end, outcome = coalesce($15, outcome),
     issued_mask = issued_mask | $17, issued_count = issued_count + $16,
     revoked_mask = (revoked_mask | $21) & ~$22
   where tenant_id = $1 and id = $3 returning status, version`,
);
const IS_SESSION = named('is_session', 'select 1 from sessions where tenant_id = $1 and id = $2');
const AUTHORIZATION = named(
  'authorization_change',
  `update authorizations set version = $4, document = $5, expires_at = $6
   where tenant_id = $1 and id = $3 and version = $4 - 1`,
);
const DEFERRED = named(
  'deferred_change',
  `update deferred_transactions set status = $5, credentials = $6, batch_id = coalesce($7, batch_id),
     error_message = $8, updated_at = $2
   where tenant_id = $1 and id = $3 and status ${IN('$4')} and expires_at > $2`,
);
const IS_REVOKED = named(
  'is_revoked',
  'select 1 from grants where tenant_id = $1 and id = $2 and revoked_at is not null',
);
const REMOVALS = ['grants', 'session_events', 'deferred_transactions', 'session_subjects'].map((table) =>
  named(`remove_${table}`, `delete from ${table} where tenant_id = $1 and session_id = $2`),
);
const REMOVE_SESSION = named('remove_sessions', 'delete from sessions where tenant_id = $1 and id = $2');
const USE = insert('used_values', 'tenant_id, kind, hash, expires_at', 'on conflict do nothing');
const EVENT = insert('session_events', 'tenant_id, session_id, version, status, at');
const NEW_SESSION = insert(
  'sessions',
  'tenant_id, id, public_id, kind, status, version, created_at, updated_at, expires_at, configuration_ids, ' +
    'use_dc_api, request, outcome, issued_mask, claimed_at, issued_count, revoked_mask',
);
const NEW_GRANT = insert(
  'grants',
  'tenant_id, id, kind, session_id, public_id, code_hash, tx_code_hash, configuration_ids, expires_at, server, ' +
    'document, attempts, generation',
);
const NEW_AUTHORIZATION = insert('authorizations', 'tenant_id, id, version, document, expires_at');
const NEW_DEFERRED = insert(
  'deferred_transactions',
  'tenant_id, id, session_id, public_id, grant_id, credential_configuration_id, holder_keys, status, ' +
    'interval_seconds, created_at, updated_at, expires_at',
);
const ISSUED = insert(
  'issued_batches',
  'tenant_id, session_id, id, credential_configuration_id, count, status_list_id, first_counter, issued_at',
);
const SUBJECT = insert('session_subjects', 'tenant_id, subject_hash, session_id', 'on conflict do nothing');
const RAISE_LIST = named(
  'raise_status_list',
  'update status_lists set version = version + 1 where tenant_id = $1 and id = $2 returning version',
);
const SET_ENTRY = insert(
  'status_entries',
  'tenant_id, list_id, idx, status, changed_version',
  `on conflict (tenant_id, list_id, idx)
     do update set status = excluded.status, changed_version = excluded.changed_version`,
);

/** Ends the transaction, with nothing of it done. */
class Unexpected extends Error {
  readonly found: Committed;

  constructor(part: Exclude<Part, 'uses'> | { readonly kind: UsedValue['kind'] }) {
    super('a part of a change did not find what it expects');
    this.found = typeof part === 'string' ? { done: false, part } : { done: false, part: 'uses', ...part };
  }
}

/** Applies changes, each in one transaction. */
export class SqliteCommit {
  readonly #sql: SqliteSql;
  readonly #cipher: Cipher;
  readonly #chainOf: (tenantId: TenantId) => SqliteChain;

  constructor(sql: SqliteSql, cipher: Cipher, chainOf: (tenantId: TenantId) => SqliteChain) {
    this.#sql = sql;
    this.#cipher = cipher;
    this.#chainOf = chainOf;
  }

  async apply(tenantId: TenantId, change: Change, now: Date): Promise<Committed> {
    try {
      return await this.#sql.transaction((run) => this.#apply(run, tenantId, change, now.getTime()));
    } catch (error) {
      if (error instanceof Unexpected) return error.found;
      throw error;
    }
  }

  #apply(run: SqliteRun, tenantId: TenantId, change: Change, now: number): Committed {
    const cipher = this.#cipher;
    const { grant, authorization, deferred, opens, issued, subject } = change;
    const write = (statement: Statement, ...columns: Columns) => run.change(statement, tenantId, ...columns);
    const move = (part: Exclude<Part, 'uses'>, statement: Statement, columns: Columns) => {
      if (write(statement, now, ...columns) === 0) throw new Unexpected(part);
    };
    expectTenant(run, tenantId, change);
    if (grant !== undefined) move('grant', GRANT, grantChangeColumns(grant));
    const session = this.#changeSession(run, tenantId, change, now);
    if (authorization !== undefined)
      move('authorization', AUTHORIZATION, authorizationColumns(cipher, tenantId, authorization));
    if (deferred !== undefined) move('deferred', DEFERRED, deferredChangeColumns(cipher, tenantId, deferred));
    if (change.unrevoked !== undefined && run.all(IS_REVOKED, tenantId, change.unrevoked).length > 0)
      throw new Unexpected('unrevoked');
    if (change.removes !== undefined) {
      for (const removal of REMOVALS) write(removal, change.removes);
      if (write(REMOVE_SESSION, change.removes) === 0) throw new Unexpected('removes');
    }
    for (const columns of usedValueColumns(change.uses ?? [])) {
      const [kind, , expiresAt] = columns as [UsedValue['kind'], string, number];
      // What is over may have been used and forgotten, so it counts as used.
      if (expiresAt <= run.time() || write(USE, ...columns) === 0) throw new Unexpected({ kind });
    }
    if (opens?.session !== undefined) {
      const { id, version, status, createdAt } = opens.session;
      write(NEW_SESSION, ...newSessionColumns(cipher, opens.session), 0, 0);
      write(EVENT, id, version, status, createdAt.getTime());
    }
    if (opens?.grant !== undefined) write(NEW_GRANT, ...newGrantColumns(cipher, tenantId, opens.grant), 0, 0);
    if (opens?.authorization !== undefined)
      write(NEW_AUTHORIZATION, ...authorizationColumns(cipher, tenantId, opens.authorization));
    if (opens?.deferred !== undefined) write(NEW_DEFERRED, ...newDeferredColumns(opens.deferred));
    if (issued !== undefined) write(ISSUED, ...issuedColumns(issued));
    if (subject !== undefined) write(SUBJECT, subject.hash, subject.sessionId);
    setStatuses(run, tenantId, change);
    if (change.audit !== undefined) this.#chainOf(tenantId).record(run, change.audit.by, change.audit.change);
    return { done: true, ...(session !== undefined && { session }) };
  }

  #changeSession(run: SqliteRun, tenantId: TenantId, { session: change }: Change, now: number) {
    if (change === undefined) return undefined;
    const columns = sessionChangeColumns(this.#cipher, tenantId, change);
    const [, writes] = columns;
    const [found] = run.all(FIND_SESSION, tenantId, now, ...columns);
    if (found === undefined) {
      const isGone = run.all(IS_SESSION, tenantId, change.id).length === 0;
      if (change.issuedExactly === undefined || !isGone) throw new Unexpected('session');
      return undefined;
    }
    if (writes !== true) return undefined;
    const completes = Number(found['completes'] ?? 0);
    const [row] = run.all(CHANGE_SESSION, tenantId, now, ...columns, completes);
    const [status, version] = [String(row?.['status']) as Session['status'], Number(row?.['version'])];
    const moved = status !== found['was'];
    if (moved) run.change(EVENT, tenantId, change.id, version, status, now);
    return { status, version, moved };
  }
}

function expectTenant(run: SqliteRun, tenantId: TenantId, { serving, revisions = {} }: Change): void {
  const [row] = run.all(TENANT, tenantId);
  if (row === undefined || (serving && row['status'] !== SERVING)) throw new Unexpected('tenant');
  const stored: Readonly<Record<string, number>> = readRevisions(row['revisions']);
  for (const [kind, revision] of Object.entries(revisions)) {
    if (stored[kind] !== revision) throw new Unexpected('tenant');
  }
}

function setStatuses(run: SqliteRun, tenantId: TenantId, { statuses = [] }: Change): void {
  const versions = new Map<unknown, number>();
  for (const [listId = null, index = null, status = null] of statusColumns(statuses)) {
    let version = versions.get(listId);
    if (version === undefined) {
      const [row] = run.all(RAISE_LIST, tenantId, listId);
      if (row === undefined) continue;
      version = Number(row['version']);
      versions.set(listId, version);
    }
    run.change(SET_ENTRY, tenantId, listId, index, status, version);
  }
}
