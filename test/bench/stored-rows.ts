import type { openRaw } from '../support/databases.ts';
import type { DatabaseKind } from './world.ts';

export type Run = Awaited<ReturnType<typeof openRaw>>['run'];
export const FOLLOWED_LIST = 'followed-list';

const DAY_MS = 86_400_000;
const EXPIRY_MS = 300_000;
/** One of so many sessions has a grant that a wallet may still renew with. */
const RENEWED = 10;

/**
 * Stores sessions of the last 24 hours as they stand after a normal day: most are completed, some expired and a few failed, each with
 * three events, a grant and a batch, and as many followed wallet statuses and audit entries. What is sealed is never opened.
 */
export async function fillStored(kind: DatabaseKind, run: Run, tenant: string, count: number): Promise<void> {
  const now = Date.now();
  const numbers =
    kind === 'postgres'
      ? `generate_series(1, ${count}) as numbers(n)`
      : `(with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${count}) select n from numbers)`;
  const sealed = kind === 'postgres' ? `repeat(md5(n::text), 20)` : `hex(randomblob(320))`;
  // The youngest expired four minutes ago, so that nothing is due.
  const created = `(${now - DAY_MS + EXPIRY_MS + 60_000} + cast(${DAY_MS - 3 * EXPIRY_MS}.0 * n / ${count} as bigint))`;
  const isRenewed = `n % ${RENEWED} = 0`;
  const status = `case when n % 1000 = 1 then 'failed' when n % 50 = 2 then 'expired' else 'completed' end`;
  await run(
    `insert into sessions (tenant_id, id, public_id, kind, status, version, created_at, updated_at, expires_at, configuration_ids,
       use_dc_api, request, outcome, issued_mask, revoked_mask, issued_count)
     select '${tenant}', 'stored-' || n, 'stored-public-' || n, 'issuance', ${status}, 3, ${created}, ${created} + 5000,
       ${created} + ${EXPIRY_MS}, '["pid"]', false, case when ${isRenewed} or n % 1000 = 1 then null else ${sealed} end, null, 1, 0, 1
     from ${numbers}`,
  );
  await run(
    `insert into grants (tenant_id, id, kind, session_id, public_id, code_hash, configuration_ids, expires_at, attempts, consumed_at,
       server, generation)
     select '${tenant}', 'stored-' || n, 'pre-authorized', 'stored-' || n, 'stored-public-' || n, 'stored-' || n, '["pid"]',
       ${created} + ${30 * DAY_MS}, 0, case when ${isRenewed} then ${created} else null end, 'built-in', 0 from ${numbers}`,
  );
  for (const [version, event] of [
    [1, 'active'],
    [2, 'fetched'],
    [3, 'completed'],
  ] as const)
    await run(
      `insert into session_events (tenant_id, session_id, version, status, at)
       select '${tenant}', 'stored-' || n, ${version}, '${event}', ${created} + ${version} from ${numbers}`,
    );
  await run(
    `insert into issued_batches (tenant_id, session_id, id, credential_configuration_id, count, issued_at)
     select '${tenant}', 'stored-' || n, 'batch-' || n, 'pid', 1, ${created} from ${numbers}`,
  );
  await run(
    `insert into followed_lists (tenant_id, id, place, next_check_at, failures)
     values ('${tenant}', '${FOLLOWED_LIST}', 'sealed', ${now + DAY_MS}, 0)`,
  );
  await run(
    `insert into followed_statuses (tenant_id, list_id, idx, batch_id, session_id, ends_at)
     select '${tenant}', '${FOLLOWED_LIST}', n, 'batch-' || n, 'stored-' || n, ${now + 365 * DAY_MS} from ${numbers}`,
  );
  await run(
    `insert into audit_entries (tenant_id, sequence, at, actor, action, kind, target, detail, hash)
     select '${tenant}', 1000 + n, ${created}, 'bench', 'updated', 'session', 'stored-' || n, '', 'none' from ${numbers}`,
  );
  await run(kind === 'postgres' ? 'vacuum analyze' : 'analyze');
}
