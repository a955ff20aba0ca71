import { type EntityManager, LockMode } from '@mikro-orm/core';
import type { AuditLog, AuditQuery } from '../../../application/ports/repositories.ts';
import { type AuditAction, type AuditEntry, type AuditKind, SERVICE_SCOPE } from '../../../domain/audit/audit-entry.ts';
import {
  type AttributedChange,
  type AuditHead,
  type ChainExtension,
  type ChainState,
  extendChain,
  verifyOrRecordBreak,
} from '../../../domain/audit/chain.ts';
import type { Macs } from '../../../domain/audit/macs.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { AuditEntryRow, AuditHeadRow } from '../rows/audit.row.ts';
import { readHead } from '../rows/audit-head.ts';
import type { PlainServiceRepositories } from './audited-repositories.ts';

/** The caller names the chain, so the tenant filter is off: the chain of the service belongs to no tenant. */
const UNSCOPED = { filters: { tenant: false }, disableIdentityMap: true } as const;

/** Only PostgreSQL needs the lock: SQLite runs one transaction at a time. */
const LOCKED = { ...UNSCOPED, lockMode: LockMode.PESSIMISTIC_WRITE } as const;

/**
 * Adds entries to a chain inside a transaction, as its last step. The head is the last row that any transaction locks, so a transaction
 * that waits for it never blocks the one that holds it.
 * @returns the entries of `additions`, without an entry that the chain itself added.
 */
export async function appendEntries(
  em: EntityManager,
  macs: Macs,
  scope: string,
  additions: readonly AttributedChange[],
): Promise<readonly AuditEntry[]> {
  const chain = await lockChain(em, scope);
  const extension = extendChain(macs, scope, chain, additions);
  await write(em, scope, extension);
  return extension.entries.slice(-additions.length);
}

async function write(em: EntityManager, scope: string, { entries, head }: ChainExtension): Promise<void> {
  const rows = entries.map(({ at: recordedAt, ...entry }) => ({ ...entry, tenantId: scope, at: recordedAt.getTime() }));
  if (rows.length > 0) await em.insertMany(AuditEntryRow, rows);
  await em.upsert(AuditHeadRow, { tenantId: scope, ...head });
}

/** Prepares a chain for appending: begins it, or records that its end was tampered with. */
export async function settleChain(em: EntityManager, macs: Macs, scope: string): Promise<void> {
  await write(em, scope, verifyOrRecordBreak(macs, scope, await lockChain(em, scope), new Date()));
}

/** Locks the head of a chain. A new chain gets a blank head first, so that its first writers are serialized, too. */
async function lockChain(em: EntityManager, scope: string): Promise<ChainState> {
  let head = await lockHead(em, scope);
  if (head === undefined) {
    await insertBlankHead(em, scope);
    head = await lockHead(em, scope);
  }
  return { head, lastSequence: await lastSequence(em, scope) };
}

async function insertBlankHead(em: EntityManager, scope: string): Promise<void> {
  const blank = { tenantId: scope, sequence: 0, hash: '', seal: '' };
  await em.upsert(AuditHeadRow, blank, { onConflictAction: 'ignore' });
}

/** Blocks other writers of the chain until the transaction ends. */
export async function lockHead(em: EntityManager, scope: string): Promise<AuditHead | undefined> {
  const row = await em.findOne(AuditHeadRow, { tenantId: scope }, LOCKED);
  return row === null ? undefined : readHead(row);
}

async function lastSequence(em: EntityManager, scope: string): Promise<number> {
  const newest = { ...UNSCOPED, orderBy: { sequence: 'desc' }, fields: ['sequence'] } as const;
  return (await em.findOne(AuditEntryRow, { tenantId: scope }, newest))?.sequence ?? 0;
}

export function auditLog(em: EntityManager, scope: string): AuditLog {
  return {
    async head() {
      const row = await em.findOne(AuditHeadRow, { tenantId: scope }, UNSCOPED);
      return row === null ? undefined : readHead(row);
    },
    async list(query) {
      const { limit, ascending = false } = query;
      const orderBy = { sequence: ascending ? 'asc' : 'desc' } as const;
      const rows = await em.find(AuditEntryRow, whereOf(scope, query), { ...UNSCOPED, orderBy, limit });
      return rows.map(readEntry);
    },
  };
}

export function serviceAuditLog(em: EntityManager): PlainServiceRepositories['audit'] {
  return {
    ...auditLog(em, SERVICE_SCOPE),
    async nextScope(previousScope) {
      const rows = await em
        .getConnection()
        .execute(NEXT_SCOPE, [previousScope, previousScope, previousScope], 'all', em.getTransactionContext());
      const [row] = rows as { id: TenantId | null }[];
      return row?.id ?? undefined;
    },
    has: async (tenantId, { sequence, hash }) => (await em.findOne(AuditEntryRow, { tenantId, sequence, hash }, UNSCOPED)) !== null,
  };
}

/** The chain of a tenant that is being removed is not verified any more. */
const NOT_REMOVED = `not exists (select 1 from leases where name = 'tenant-removal/' || tenant_id)`;

/** Three index lookups, whatever the length of the chains. */
const NEXT_SCOPE = `select min(id) as id from (
  select min(id) as id from tenants where id > ?
  union all select min(tenant_id) from audit_heads where tenant_id > ? and ${NOT_REMOVED}
  union all select min(tenant_id) from audit_entries where tenant_id > ? and ${NOT_REMOVED}) s`;

/** A client id also matches the persons that act through the client; an actor with a person matches that person only. */
function actorIs(actor: string): { actor: string | { $like: string } }[] {
  const isPlain = !/[%_\\]/.test(actor);
  return [{ actor }, ...(isPlain ? [{ actor: { $like: `${actor} (%` } }] : [])];
}

function whereOf(scope: string, { actor, kind, target, action, since: startTime, until: endTime, after: cursor, ascending }: AuditQuery) {
  const timeRange = {
    ...(startTime !== undefined && { $gte: startTime.getTime() }),
    ...(endTime !== undefined && { $lt: endTime.getTime() }),
  };
  return {
    tenantId: scope,
    ...(actor !== undefined && { $or: actorIs(actor) }),
    ...(kind !== undefined && { kind }),
    ...(target !== undefined && { target }),
    ...(action !== undefined && { action }),
    ...(Object.keys(timeRange).length > 0 && { at: timeRange }),
    ...(cursor !== undefined && { sequence: ascending ? { $gt: cursor } : { $lt: cursor } }),
  };
}

function readEntry(row: AuditEntryRow): AuditEntry {
  return {
    sequence: row.sequence,
    at: new Date(row.at),
    actor: row.actor,
    action: row.action as AuditAction,
    kind: row.kind as AuditKind,
    target: row.target,
    detail: row.detail,
    hash: row.hash,
  };
}
