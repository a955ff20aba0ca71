import { BOTH_DIALECTS } from '../both-dialects.ts';
import { COMMIT_CHANGE } from './Migration00000000000008_commit.ts';

const LOCK_KEY = `hashtextextended('subject ' || p_tenant || ' ' || p_fingerprint, 0)`;
const TENANT_LOCK_KEY = `hashtextextended('revocations ' || p_tenant, 0)`;
const LAST_NUMBER = `coalesce((select max(l.number) from revoked_subjects l where l.tenant_id = p_tenant), 0)`;

/** A new grant notes how many revocations came before it. */
const COMMIT_CHANGE_WITH_ORDER = [
  ['create function', 'create or replace function'],
  ['document, attempts, generation)', 'document, attempts, generation, revocations_before)'],
  ['p_new_grant.document, 0, 0);', `p_new_grant.document, 0, 0, ${LAST_NUMBER});`],
].reduce((text, [before = '', after = '']) => text.replace(before, after), COMMIT_CHANGE);

/**
 * Functions keep their names and parameters, so that a process of an earlier release keeps the order, too. A grant that is recorded
 * while a revocation is in progress has the lower number, so it counts as the earlier one. Revocations of one tenant are numbered one
 * after the other, so that no two have the same number: the lock of the tenant is taken after that of the person and held until the
 * revocation is committed. Issuances take only locks of persons, so a revocation with the lock of the tenant never waits for another lock.
 */
export const statements = [
  // As in other migrations: each change reads its tenant first, and waits there without holding another lock.
  'lock table "tenants" in access exclusive mode;',
  ...BOTH_DIALECTS.Migration00000000000039_revocation_order,
  COMMIT_CHANGE_WITH_ORDER,
  `create or replace function identify_batch_1(p_tenant text, p_fingerprint text, p_session text, p_batch text,
        p_configuration text, p_expires_at bigint, p_grant text, p_authorized_at bigint)
      returns void language plpgsql set search_path from current as $$
      begin
        perform pg_advisory_xact_lock_shared(${LOCK_KEY});
        insert into issued_subjects
            (tenant_id, fingerprint, session_id, batch_id, credential_configuration_id, expires_at, grant_id)
          select p_tenant, p_fingerprint, p_session, p_batch, p_configuration, p_expires_at, p_grant
          where not exists (
            select 1 from revoked_subjects r left join grants g on g.tenant_id = p_tenant and g.id = p_grant
            where r.tenant_id = p_tenant and r.fingerprint = p_fingerprint
              and r.credential_configuration_id in ('', p_configuration)
              and case when g.id is null then r.revoked_at >= p_authorized_at
                when r.number is null then g.revocations_before is null and r.revoked_at >= coalesce(g.consumed_at, 0) - 60000
                else r.number > coalesce(g.revocations_before, 0) end);
        if not found then raise exception 'identifies' using errcode = 'VC001'; end if;
      end $$;`,
  `create or replace function note_revoked_subject_1(p_tenant text, p_fingerprint text, p_configurations text[],
        p_now bigint)
      returns void language plpgsql set search_path from current as $$
      begin
        perform pg_advisory_xact_lock(${LOCK_KEY});
        perform pg_advisory_xact_lock(${TENANT_LOCK_KEY});
        insert into revoked_subjects (tenant_id, fingerprint, credential_configuration_id, revoked_at, number)
          select t.id, p_fingerprint, c.id, p_now, ${LAST_NUMBER} + 1
          from tenants t, unnest(p_configurations) as c(id) where t.id = p_tenant
          on conflict (tenant_id, fingerprint, credential_configuration_id)
            do update set revoked_at = greatest(excluded.revoked_at, revoked_subjects.revoked_at), number = excluded.number;
      end $$;`,
  `create function authorize_deferred_1(p_tenant text, p_id text, p_authorized_at bigint)
      returns void language sql volatile set search_path from current as $$
        update deferred_transactions d set authorized_at = coalesce(
            (select g.consumed_at from grants g where g.tenant_id = p_tenant and g.id = d.grant_id), p_authorized_at)
          where d.tenant_id = p_tenant and d.id = p_id $$;`,
];
