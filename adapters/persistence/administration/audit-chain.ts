import { type EntityManager, LockMode } from '@mikro-orm/core';
import type { AuditLog, AuditQuery } from '../../../application/ports/repositories.ts';
import { type AuditAction, type AuditEntry, type AuditKind, SERVICE_SCOPE } from '../../../domain/audit/audit-entry.ts';
import { type Attributed, type AuditHead, type Extension, extend, type FoundChain, settle } from '../../../domain/audit/chain.ts';
import type { Macs } from '../../../domain/audit/macs.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { AuditEntryRow, AuditHeadRow } from '../rows/audit.row.ts';
import { readHead } from '../rows/audit-head.ts';
import type { PlainServiceRepositories } from './audited-repositories.ts';

/** Chains are named by the caller: that of the service belongs to no tenant. */
const UNSCOPED = { filters: { tenant: false }, disableIdentityMap: true } as const;

/** SQLite has one transaction at a time and does without. */
const LOCKED = { ...UNSCOPED, lockMode: LockMode.PESSIMISTIC_WRITE } as const;

/**
 * Adds entries to a chain inside a transaction, as its last step: the head is the last row that any transaction locks,
 * so nobody who waits for it holds up somebody who has it.
 * @returns the entries of `additions`, without one that the chain itself gave rise to.
 */
export async function appendEntries(
  em: EntityManager,
  macs: Macs,
  scope: string,
  additions: readonly Attributed[],
): Promise<readonly AuditEntry[]> {
  const found = await lockChain(em, scope);
  const extension = extend(macs, scope, found, additions);
  await write(em, scope, extension);
  return extension.entries.slice(-additions.length);
}

async function write(em: EntityManager, scope: string, { entries, head }: Extension): Promise<void> {
  const rows = entries.map(({ at, ...entry }) => ({ ...entry, tenantId: scope, at: at.getTime() }));
  if (rows.length > 0) await em.insertMany(AuditEntryRow, rows);
  await em.upsert(AuditHeadRow, { tenantId: scope, ...head });
}

/** Makes a chain one that can be written to by who knows its head: begins it, or says that somebody broke it. */
export async function settleChain(em: EntityManager, macs: Macs, scope: string): Promise<void> {
  await write(em, scope, settle(macs, scope, await lockChain(em, scope), new Date()));
}

/** Writers of one chain come one after the other, also those that begin it. */
async function lockChain(em: EntityManager, scope: string): Promise<FoundChain> {
  let head = await lockHead(em, scope);
  if (head === undefined) {
    await makeRoom(em, scope);
    head = await lockHead(em, scope);
  }
  return { head, lastSequence: await lastSequence(em, scope) };
}

async function makeRoom(em: EntityManager, scope: string): Promise<void> {
  const blank = { tenantId: scope, sequence: 0, hash: '', seal: '' };
  await em.upsert(AuditHeadRow, blank, { onConflictAction: 'ignore' });
}

/** Keeps others from writing to the chain until the end of the transaction. */
export async function lockHead(em: EntityManager, scope: string): Promise<AuditHead | undefined> {
  const row = await em.findOne(AuditHeadRow, { tenantId: scope }, LOCKED);
  return row === null ? undefined : readHead(row);
}

async function lastSequence(em: EntityManager, scope: string): Promise<number> {
  const newest = { ...UNSCOPED, orderBy: { sequence: 'desc' }, fields: ['sequence'] } as const;
  return (await em.findOne(AuditEntryRow, { tenantId: scope }, newest))?.sequence ?? 0;
}

/** Reads one chain. */
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
    async nextScope(after) {
      const rows = await em.getConnection().execute(NEXT_SCOPE, [after, after, after], 'all', em.getTransactionContext());
      const [row] = rows as { id: TenantId | null }[];
      return row?.id ?? undefined;
    },
    has: async (tenantId, { sequence, hash }) => (await em.findOne(AuditEntryRow, { tenantId, sequence, hash }, UNSCOPED)) !== null,
  };
}

/** Of a tenant that is being removed, nobody verifies what is left of its chain. */
const NOT_REMOVED = `not exists (select 1 from leases where name = 'tenant-removal/' || tenant_id)`;

/** Three looks at an index, however long the chains are. */
const NEXT_SCOPE = `select min(id) as id from (
  select min(id) as id from tenants where id > ?
  union all select min(tenant_id) from audit_heads where tenant_id > ? and ${NOT_REMOVED}
  union all select min(tenant_id) from audit_entries where tenant_id > ? and ${NOT_REMOVED}) s`;

/** A client id finds what its persons did, too; a client with a person that person alone. */
function actorIs(actor: string): { actor: string | { $like: string } }[] {
  const isPlain = !/[%_\\]/.test(actor);
  return [{ actor }, ...(isPlain ? [{ actor: { $like: `${actor} (%` } }] : [])];
}

function whereOf(scope: string, { actor, kind, target, action, since, until, after, ascending }: AuditQuery) {
  const at = { ...(since !== undefined && { $gte: since.getTime() }), ...(until !== undefined && { $lt: until.getTime() }) };
  return {
    tenantId: scope,
    ...(actor !== undefined && { $or: actorIs(actor) }),
    ...(kind !== undefined && { kind }),
    ...(target !== undefined && { target }),
    ...(action !== undefined && { action }),
    ...(Object.keys(at).length > 0 && { at }),
    ...(after !== undefined && { sequence: ascending ? { $gt: after } : { $lt: after } }),
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
