import type { Cipher } from '../../../application/ports/cipher.ts';
import type { KeptTrustListJobs, UntoldFinding } from '../../../application/ports/kept-trust-lists.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { KEPT_TRUST_LISTS, keyOfFinding } from '../kept-trust-lists.ts';
import { named } from '../statement.ts';
import type { JobSql } from './job-sql.ts';

const HELD = named(
  'held_trust_lists',
  'select count(*) as held from kept_trust_lists where seen_at > $1 and held_since is not null',
);
const FORGET = named(
  'forget_kept_trust_lists',
  `delete from kept_trust_lists where (tenant_id, id) in (select tenant_id, id from kept_trust_lists
     where seen_at <= $1 and (ends_at is null or ends_at <= $1) limit $2)`,
);

const UNTOLD = named(
  'untold_findings',
  `select tenant_id, id, place, finding, held_since from kept_trust_lists
   where finding_key is not null and (told_key is null or told_key <> finding_key) order by held_since limit $1`,
);
const TOLD = named(
  'told_finding',
  'update kept_trust_lists set told_key = $3 where tenant_id = $1 and id = $2 and finding_key = $3',
);

export function keptTrustListJobs(sql: JobSql, cipher: Cipher): KeptTrustListJobs {
  return {
    async heldTrustLists(since) {
      return Number((await sql.all(HELD, since.getTime()))[0]?.['held']);
    },
    async untoldFindings(limit) {
      const rows = await sql.all(UNTOLD, limit);
      return rows.flatMap((row): UntoldFinding[] => {
        const [tenantId, id] = [row['tenant_id'] as TenantId, String(row['id'])];
        const at = { cipher, tenantId, id };
        const finding = KEPT_TRUST_LISTS.readField('finding', row['finding'], at);
        const place = KEPT_TRUST_LISTS.readField('place', row['place'], at);
        const since = new Date(Number(row['held_since']));
        return finding === null ? [] : [{ tenantId, id, place, finding, since }];
      });
    },
    async toldFinding({ tenantId, id, finding }) {
      await sql.change(TOLD, tenantId, id, keyOfFinding(finding));
    },
    forgetKeptTrustLists: (before, limit) => sql.change(FORGET, before.getTime(), limit),
  };
}
