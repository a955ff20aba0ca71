import { z } from 'zod';
import { AUDIT_ACTIONS, AUDIT_KINDS, type AuditEntry, SERVICE_SCOPE } from '../../domain/audit/audit-entry.ts';
import { defined } from '../../domain/shared/defined.ts';
import { numberCursor, pageLimit } from '../../domain/shared/list-page.ts';
import type { Caller } from '../caller.ts';
import { needs } from '../needs.ts';
import type { AuditQuery } from '../ports/repositories.ts';
import { Store } from '../ports/store.ts';
import { readableLog } from './readable-log.ts';

const DEFAULT_LIMIT = 100;
const CURSOR = /^[1-9]\d{0,14}$/;

const time = z.iso
  .datetime({ offset: true })
  .transform((text) => new Date(text))
  .optional();

export const AuditLogQuery = z.object({
  tenant: z.string().max(63).optional().describe('Tenant of the log, for `tenants:manage`. Default: the log of the service'),
  actor: z.string().min(1).max(255).optional().describe('Client id, or `system` for the service itself'),
  kind: z.enum(AUDIT_KINDS).optional().describe('Kind of the changed object'),
  target: z.string().min(1).max(255).optional().describe('Id of the changed object'),
  action: z.enum(AUDIT_ACTIONS).optional(),
  since: time.describe('Only entries of this time or later'),
  until: time.describe('Only entries before this time'),
  limit: pageLimit(DEFAULT_LIMIT),
  cursor: numberCursor(CURSOR),
  sort: z.enum(['asc', 'desc']).default('desc').describe('By number'),
});
export type AuditLogQuery = z.infer<typeof AuditLogQuery>;

export type AuditPage = {
  readonly entries: readonly AuditEntry[];
  /** Cursor of the next page; absent on the last one. */
  readonly next?: string;
};

/** Lists audit entries, newest first by default: of the caller's tenant, or of the service and any tenant. */
export class ListAuditEntries extends needs({ store: Store }) {
  /** @throws Failure `not_found`, `forbidden` as `readableLog`. */
  async execute(caller: Caller, request: AuditLogQuery): Promise<AuditPage> {
    const query = queryOf(request);
    const { store } = this.ports;
    const scope = await readableLog(store, caller, request.tenant);
    const entries =
      scope === SERVICE_SCOPE
        ? await store.forService(({ audit }) => audit.list(query))
        : await store.forTenant(scope, ({ audit }) => audit.list(query));
    const page = entries.slice(0, request.limit);
    const lastEntry = page.at(-1);
    if (lastEntry === undefined || entries.length === page.length) return { entries: page };
    return { entries: page, next: String(lastEntry.sequence) };
  }
}

/** Queries one entry more than the page, to find out if there is another page. */
function queryOf({ limit, cursor, sort, tenant: _tenant, ...filters }: AuditLogQuery): AuditQuery {
  return { ...defined({ ...filters, after: cursor }), ascending: sort === 'asc', limit: limit + 1 };
}
