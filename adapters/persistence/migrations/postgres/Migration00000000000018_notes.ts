/**
 * Moves many sessions by one call, and skips those that somebody else has locked: they move anyhow. What it notes decides
 * nothing and nobody was told of it, so the end of its transaction waits for no disk.
 */
export const statements = [
  `create function note_sessions_1(
        p_tenant text, p_now bigint, p_from text[], p_to text, p_sessions text[])
      returns table (id text, version int) language plpgsql set search_path from current as $$
      #variable_conflict use_column
      begin
        perform set_config('synchronous_commit', 'off', true);
        return query with free as (
            select s.id from sessions s
            where s.tenant_id = p_tenant and s.id = any(p_sessions) and s.status = any(p_from) and s.expires_at > p_now
            order by s.id for update skip locked),
          moved as (
            update sessions s set status = p_to, version = s.version + 1, updated_at = p_now from free
            where s.tenant_id = p_tenant and s.id = free.id returning s.id, s.version),
          told as (
            insert into session_events (tenant_id, session_id, version, status, at)
              select p_tenant, m.id, m.version, p_to, p_now from moved m)
          select m.id::text, m.version from moved m;
      end $$;`,
];
