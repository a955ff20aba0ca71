import type { KeptTrustListJobs } from '../../../application/ports/kept-trust-lists.ts';
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

export function keptTrustListJobs(sql: JobSql): KeptTrustListJobs {
  return {
    async heldTrustLists(since) {
      return Number((await sql.all(HELD, since.getTime()))[0]?.['held']);
    },
    forgetKeptTrustLists: (before, limit) => sql.change(FORGET, before.getTime(), limit),
  };
}
