import { BOTH_DIALECTS } from '../both-dialects.ts';

const LOCK_KEY = `hashtextextended('subject ' || p_tenant || ' ' || p_fingerprint, 0)`;

/**
 * `identify_batch_1` is called beside `commit_change_1`, in the same statement: it records the person that a batch is about, and ends
 * the call with SQLSTATE `VC001` if credentials of the person were revoked since the wallet was authorized. Issuances share a lock of
 * the person, and a revocation takes it alone: it waits for issuances in progress, and later ones find what it recorded.
 */
export const statements = [
  // As in other migrations: each change reads its tenant first, and waits there without holding another lock.
  'lock table "tenants" in access exclusive mode;',
  ...BOTH_DIALECTS.Migration00000000000037_grants_of_subjects,
  `create function identify_batch_1(p_tenant text, p_fingerprint text, p_session text, p_batch text,
        p_configuration text, p_expires_at bigint, p_grant text, p_authorized_at bigint)
      returns void language plpgsql set search_path from current as $$
      begin
        perform pg_advisory_xact_lock_shared(${LOCK_KEY});
        insert into issued_subjects
            (tenant_id, fingerprint, session_id, batch_id, credential_configuration_id, expires_at, grant_id)
          select p_tenant, p_fingerprint, p_session, p_batch, p_configuration, p_expires_at, p_grant
          where not exists (select 1 from revoked_subjects r
            where r.tenant_id = p_tenant and r.fingerprint = p_fingerprint
              and r.credential_configuration_id in ('', p_configuration)
              and r.revoked_at >= coalesce(
                (select g.consumed_at from grants g where g.tenant_id = p_tenant and g.id = p_grant), p_authorized_at));
        if not found then raise exception 'identifies' using errcode = 'VC001'; end if;
      end $$;`,
  `create function note_revoked_subject_1(p_tenant text, p_fingerprint text, p_configurations text[], p_now bigint)
      returns void language plpgsql set search_path from current as $$
      begin
        perform pg_advisory_xact_lock(${LOCK_KEY});
        insert into revoked_subjects (tenant_id, fingerprint, credential_configuration_id, revoked_at)
          select t.id, p_fingerprint, c.id, p_now from tenants t, unnest(p_configurations) as c(id) where t.id = p_tenant
          on conflict (tenant_id, fingerprint, credential_configuration_id)
            do update set revoked_at = greatest(excluded.revoked_at, revoked_subjects.revoked_at);
      end $$;`,
];
