/** `all` is raised by processes of an older release, which know one revision only. */
const NO_REVISIONS =
  '{"all":0,"tenant":0,"clients":0,"issuance":0,"credentials":0,"presentations":0,"keyChains":0,"registrar":0,' +
  '"registrationCertificates":0,"statusLists":0,"trustLists":0}';

/** Composite types, by what they carry. Columns stand in the order in which `partsOf` (`rows/change-columns.ts`) writes them. */
const TYPES = {
  used_value: 'kind text, hash text, expires_at bigint',
  new_session: `id text, public_id text, kind text, status text, version int, created_at bigint, updated_at bigint,
    expires_at bigint, configuration_ids text, use_dc_api boolean, request text, outcome text, issued_mask int,
    claimed_at bigint`,
  new_grant: `id text, kind text, session_id text, public_id text, code_hash text, tx_code_hash text,
    configuration_ids text, expires_at bigint, server text, document text`,
  new_authorization: 'id text, version int, document text, expires_at bigint',
  new_deferred: `id text, session_id text, public_id text, grant_id text, credential_configuration_id text,
    holder_keys text, status text, interval_seconds int, created_at bigint, updated_at bigint, expires_at bigint`,
  session_change: `id text, writes int, running text[], anytime text[], version int, unanswered boolean,
    unbarred int, issued_below int, deferred_below int, issued_exactly int, to_status text, answers boolean,
    outcome text, counts int, sets_bit int, all_bits int, last_from text[], last_to text, bars int, unbars int,
    lasts_until bigint, touches boolean, raises int`,
  grant_change: `id text, consumed boolean, unexpired boolean, unrevoked boolean, attempts_below int, generation int,
    consumes boolean, holder text, expires_at bigint, attempts int, generations int, revokes boolean`,
  deferred_change: `id text, from_status text[], to_status text, credentials text, batch_id text, error_message text`,
  issued_batch: `session_id text, id text, credential_configuration_id text, count int, status_list_id text,
    first_counter int, issued_at bigint`,
  status_change: 'list_id text, idx int, status int',
  session_subject: 'subject_hash text, session_id text',
  audit_addition: `before_sequence bigint, before_hash text, sequence bigint, hash text, seal text, at bigint,
    actor text, action text, kind text, target text, detail text`,
} as const;

/** Which parts there are, as bits of one number: asking a composite parameter that is null costs more than a statement. */
const PARTS = [
  'grant',
  'session',
  'authorization',
  'deferred',
  'unrevoked',
  'removes',
  'uses',
  'newSession',
  'newGrant',
  'newAuthorization',
  'newDeferred',
  'issued',
  'subject',
  'statuses',
  'audit',
] as const;
type PartName = (typeof PARTS)[number];
/** Each condition costs as much as half a statement: a change of two parts must not ask for all fifteen. */
const has = (...parts: readonly PartName[]) => `p_parts & ${parts.reduce((sum, part) => sum + 2 ** PARTS.indexOf(part), 0)} > 0`;

const unexpected = (part: string) => `raise exception '${part}' using errcode = 'VC001';`;

const SESSION_IN_ITS_TIME = `s.tenant_id = p_tenant and s.id = p_session.id
        and (s.status = any(p_session.anytime) or s.status = any(p_session.running) and s.expires_at > p_now)
        and (p_session.version is null or s.version = p_session.version)
        and (not p_session.unanswered or s.claimed_at is null)`;
const SESSION_AS_EXPECTED = `${SESSION_IN_ITS_TIME}
        and (s.revoked_mask & p_session.unbarred) = 0
        and (p_session.issued_below is null or s.issued_count < p_session.issued_below)
        and (p_session.issued_exactly is null or s.issued_count = p_session.issued_exactly)`;

export const COMMIT_CHANGE = `create function commit_change_1(
  p_tenant text, p_parts int, p_now bigint, p_serving text, p_revisions jsonb, p_uses used_value_1[], p_unrevoked text,
  p_grant grant_change_1, p_session session_change_1, p_authorization new_authorization_1, p_deferred deferred_change_1,
  p_new_session new_session_1, p_new_grant new_grant_1, p_new_authorization new_authorization_1,
  p_new_deferred new_deferred_1, p_issued issued_batch_1, p_statuses status_change_1[], p_subject session_subject_1,
  p_removes text,
  p_audit audit_addition_1)
returns text language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
  used used_value_1;
  became text;
  at_version int;
  moved boolean;
begin
  perform 1 from tenants t where t.id = p_tenant and (p_serving is null or t.status = p_serving)
    and (p_revisions is null or t.revisions @> p_revisions);
  if not found then ${unexpected('tenant')} end if;

  if ${has('grant', 'session', 'authorization', 'deferred', 'unrevoked', 'removes')} then
    if ${has('grant')} then
      update grants g set
        consumed_at = case when p_grant.consumes then p_now else g.consumed_at end,
        holder = coalesce(p_grant.holder, g.holder),
        expires_at = coalesce(p_grant.expires_at, g.expires_at),
        attempts = g.attempts + p_grant.attempts,
        generation = g.generation + p_grant.generations,
        revoked_at = case when p_grant.revokes then p_now else g.revoked_at end
      where g.tenant_id = p_tenant and g.id = p_grant.id
        and (p_grant.consumed is null or (g.consumed_at is not null) = p_grant.consumed)
        and (not p_grant.unexpired or g.expires_at > p_now)
        and (not p_grant.unrevoked or g.revoked_at is null)
        and (p_grant.attempts_below is null or g.attempts < p_grant.attempts_below)
        and (p_grant.generation is null or g.generation = p_grant.generation);
      if not found then ${unexpected('grant')} end if;
    end if;

    if ${has('session')} then
      if p_session.all_bits is not null then
        -- The lock comes first, since only the status under the lock tells who completed the session.
        update sessions s set status = case when locked.completes then p_session.last_to else s.status end,
            version = s.version + locked.completes::int, updated_at = p_now,
            issued_mask = s.issued_mask | p_session.sets_bit, issued_count = s.issued_count + p_session.counts
          from (
            select s.status = any(p_session.last_from) and (s.issued_mask | p_session.sets_bit) = p_session.all_bits as completes
            from sessions s where ${SESSION_AS_EXPECTED} for update) as locked
          where s.tenant_id = p_tenant and s.id = p_session.id
          returning s.status, s.version, locked.completes into became, at_version, moved;
        if not found then ${unexpected('session')} end if;
      elsif p_session.writes = 1 then
        moved := true;
        update sessions s set status = p_session.to_status, version = s.version + 1, updated_at = p_now,
            claimed_at = case when p_session.answers then p_now else s.claimed_at end,
            outcome = coalesce(p_session.outcome, s.outcome)
          where ${SESSION_IN_ITS_TIME}
          returning s.status, s.version into became, at_version;
        if not found then ${unexpected('session')} end if;
      elsif p_session.writes = 2 then
        moved := p_session.to_status is not null;
        update sessions s set status = coalesce(p_session.to_status, s.status),
            version = s.version + p_session.raises,
            updated_at = case when p_session.touches then p_now else s.updated_at end,
            expires_at = greatest(s.expires_at, p_session.lasts_until),
            claimed_at = case when p_session.answers then p_now else s.claimed_at end,
            outcome = coalesce(p_session.outcome, s.outcome), issued_count = s.issued_count + p_session.counts,
            revoked_mask = (s.revoked_mask | p_session.bars) & ~p_session.unbars
          where ${SESSION_AS_EXPECTED}
          returning s.status, s.version into became, at_version;
        if not found and (p_session.issued_exactly is null or exists (
            select 1 from sessions s where s.tenant_id = p_tenant and s.id = p_session.id)) then
          ${unexpected('session')}
        end if;
      else
        perform 1 from sessions s where ${SESSION_AS_EXPECTED};
        if not found then ${unexpected('session')} end if;
      end if;
      if p_session.deferred_below is not null then
        perform 1 from deferred_transactions d where d.tenant_id = p_tenant and d.session_id = p_session.id
          having count(*) < p_session.deferred_below;
        if not found then ${unexpected('session')} end if;
      end if;
      if moved and became is not null then
        insert into session_events (tenant_id, session_id, version, status, at)
          values (p_tenant, p_session.id, at_version, became, p_now);
      end if;
    end if;

    if ${has('authorization')} then
      update authorizations a set version = p_authorization.version, document = p_authorization.document,
        expires_at = p_authorization.expires_at
      where a.tenant_id = p_tenant and a.id = p_authorization.id and a.version = p_authorization.version - 1;
      if not found then ${unexpected('authorization')} end if;
    end if;

    if ${has('deferred')} then
      update deferred_transactions d set status = p_deferred.to_status, credentials = p_deferred.credentials,
        batch_id = coalesce(p_deferred.batch_id, d.batch_id), error_message = p_deferred.error_message, updated_at = p_now
      where d.tenant_id = p_tenant and d.id = p_deferred.id and d.status = any(p_deferred.from_status)
        and d.expires_at > p_now;
      if not found then ${unexpected('deferred')} end if;
    end if;

    if ${has('unrevoked')} then
      perform 1 from grants g where g.tenant_id = p_tenant and g.id = p_unrevoked and g.revoked_at is not null;
      if found then ${unexpected('unrevoked')} end if;
    end if;

    if ${has('removes')} then
      delete from grants g where g.tenant_id = p_tenant and g.session_id = p_removes;
      delete from session_events e where e.tenant_id = p_tenant and e.session_id = p_removes;
      delete from deferred_transactions d where d.tenant_id = p_tenant and d.session_id = p_removes;
      delete from session_subjects u where u.tenant_id = p_tenant and u.session_id = p_removes;
      delete from sessions s where s.tenant_id = p_tenant and s.id = p_removes;
      if not found then ${unexpected('removes')} end if;
    end if;
  end if;

  if ${has('uses')} then
    foreach used in array p_uses loop
      insert into used_values (tenant_id, kind, hash, expires_at)
        values (p_tenant, used.kind, used.hash, used.expires_at) on conflict do nothing;
      -- What is over by the time of the database may have been used and forgotten, so it counts as used.
      if not found or used.expires_at <= date_part('epoch', clock_timestamp()) * 1000 then
        raise exception 'uses' using errcode = 'VC001', detail = used.kind;
      end if;
    end loop;
  end if;

  if ${has('newSession', 'newGrant', 'newAuthorization', 'newDeferred', 'issued', 'subject')} then
    if ${has('newSession')} then
      insert into sessions (tenant_id, id, public_id, kind, status, version, created_at, updated_at, expires_at,
          configuration_ids, use_dc_api, request, outcome, issued_mask, claimed_at, issued_count, revoked_mask)
        values (p_tenant, p_new_session.id, p_new_session.public_id, p_new_session.kind, p_new_session.status,
          p_new_session.version, p_new_session.created_at, p_new_session.updated_at, p_new_session.expires_at,
          p_new_session.configuration_ids, p_new_session.use_dc_api, p_new_session.request, p_new_session.outcome,
          p_new_session.issued_mask, p_new_session.claimed_at, 0, 0);
      insert into session_events (tenant_id, session_id, version, status, at)
        values (p_tenant, p_new_session.id, p_new_session.version, p_new_session.status, p_new_session.created_at);
    end if;
    if ${has('newGrant')} then
      insert into grants (tenant_id, id, kind, session_id, public_id, code_hash, tx_code_hash, configuration_ids,
          expires_at, server, document, attempts, generation)
        values (p_tenant, p_new_grant.id, p_new_grant.kind, p_new_grant.session_id, p_new_grant.public_id,
          p_new_grant.code_hash, p_new_grant.tx_code_hash, p_new_grant.configuration_ids, p_new_grant.expires_at,
          p_new_grant.server, p_new_grant.document, 0, 0);
    end if;
    if ${has('newAuthorization')} then
      insert into authorizations (tenant_id, id, version, document, expires_at)
        values (p_tenant, p_new_authorization.id, p_new_authorization.version, p_new_authorization.document,
          p_new_authorization.expires_at);
    end if;
    if ${has('newDeferred')} then
      insert into deferred_transactions (tenant_id, id, session_id, public_id, grant_id, credential_configuration_id,
          holder_keys, status, interval_seconds, created_at, updated_at, expires_at)
        values (p_tenant, p_new_deferred.id, p_new_deferred.session_id, p_new_deferred.public_id, p_new_deferred.grant_id,
          p_new_deferred.credential_configuration_id, p_new_deferred.holder_keys, p_new_deferred.status,
          p_new_deferred.interval_seconds, p_new_deferred.created_at, p_new_deferred.updated_at,
          p_new_deferred.expires_at);
    end if;
    if ${has('issued')} then
      insert into issued_batches (tenant_id, session_id, id, credential_configuration_id, count, status_list_id,
          first_counter, issued_at)
        values (p_tenant, p_issued.session_id, p_issued.id, p_issued.credential_configuration_id, p_issued.count,
          p_issued.status_list_id, p_issued.first_counter, p_issued.issued_at);
    end if;
    if ${has('subject')} then
      insert into session_subjects (tenant_id, subject_hash, session_id)
        values (p_tenant, p_subject.subject_hash, p_subject.session_id) on conflict do nothing;
    end if;
  end if;

  if ${has('statuses', 'audit')} then
    if ${has('statuses')} then
      -- Lists are locked in the order of their ids, so that two changes wait for each other in turn.
      with l as (
        update status_lists set version = version + 1
        where tenant_id = p_tenant and id in (select id from status_lists
          where tenant_id = p_tenant and id in (select list_id from unnest(p_statuses)) order by id for update)
        returning id, version)
      insert into status_entries (tenant_id, list_id, idx, status, changed_version)
        select p_tenant, v.list_id, v.idx, v.status, l.version from unnest(p_statuses) v join l on l.id = v.list_id
      on conflict (tenant_id, list_id, idx)
        do update set status = excluded.status, changed_version = excluded.changed_version;
    end if;

    -- The end of the chain is the last row that any change locks.
    if ${has('audit')} then
      update audit_heads h set sequence = p_audit.sequence, hash = p_audit.hash, seal = p_audit.seal
        where h.tenant_id = p_tenant and h.sequence = p_audit.before_sequence and h.hash = p_audit.before_hash;
      if not found then ${unexpected('audit')} end if;
      insert into audit_entries (tenant_id, sequence, hash, at, actor, action, kind, target, detail)
        values (p_tenant, p_audit.sequence, p_audit.hash, p_audit.at, p_audit.actor, p_audit.action, p_audit.kind,
          p_audit.target, p_audit.detail);
    end if;
  end if;
  if became is not null then
    return became || ' ' || at_version || ' ' || moved;
  end if;
  return null;
end $$;`;

/**
 * One call that applies a change: its parts as parameters, null where a change has none. A part that does not find what
 * it expects ends the call with SQLSTATE `VC001` and the part's name, and nothing of it has happened. A release that
 * needs other parts makes a function of another name, so that processes of both releases run side by side.
 */
export const statements = [
  `alter table "tenants" add "revisions" jsonb not null default '${NO_REVISIONS}';`,
  // A process of an older release raises the revision of the tenant alone.
  `create function raise_all_revisions() returns trigger language plpgsql as $$
      begin
        if new.revision <> old.revision and new.revisions = old.revisions then
          new.revisions := jsonb_set(new.revisions, '{all}', to_jsonb((new.revisions->>'all')::int + 1));
        end if;
        return new;
      end $$;`,
  `create trigger raise_all_revisions before update of revision on "tenants"
      for each row execute function raise_all_revisions();`,
  ...Object.entries(TYPES).map(([name, columns]) => `create type ${name}_1 as (${columns});`),
  COMMIT_CHANGE,
  // Before anybody has counted its rows, a table looks as if the tenant alone led to one: only one index leads with it.
  'alter table "grants" drop constraint "grants_code", add constraint "grants_code" unique ("code_hash", "tenant_id");',
];
