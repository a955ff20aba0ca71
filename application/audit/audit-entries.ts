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
/** The number of an entry. */
const CURSOR = /^[1-9]\d{0,14}$/;

const time = z.iso
  .datetime({ offset: true })
  .transform((text) => new Date(text))
  .optional();

export const AuditLogQuery = z.object({
  tenant: z.string().max(63).optional().describe('Whose log; for `tenants:manage`, which otherwise reads that of the service'),
  actor: z.string().min(1).max(255).optional().describe('Client id, or `system` for the service itself'),
  kind: z.enum(AUDIT_KINDS).optional().describe('What sort of thing was changed'),
  target: z.string().min(1).max(255).optional().describe('Id of the thing'),
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
  /** Where the next page begins; absent on the last one. */
  readonly next?: string;
};

/** What was changed, the newest first unless stated: in the caller's tenant, or in the service and every tenant. */
export class ListAuditEntries extends needs({ store: Store }) {
  /** @throws Failure `not_found`, `forbidden` as `readableLog` does. */
  async execute(caller: Caller, wanted: AuditLogQuery): Promise<AuditPage> {
    const query = queryOf(wanted);
    const { store } = this.ports;
    const scope = await readableLog(store, caller, wanted.tenant);
    const entries =
      scope === SERVICE_SCOPE
        ? await store.forService(({ audit }) => audit.list(query))
        : await store.forTenant(scope, ({ audit }) => audit.list(query));
    const page = entries.slice(0, wanted.limit);
    const last = page.at(-1);
    if (last === undefined || entries.length === page.length) return { entries: page };
    return { entries: page, next: String(last.sequence) };
  }
}

/** One entry more than a page tells whether there is another page. */
function queryOf({ limit, cursor, sort, tenant: _tenant, ...wanted }: AuditLogQuery): AuditQuery {
  return { ...defined({ ...wanted, after: cursor }), ascending: sort === 'asc', limit: limit + 1 };
}
