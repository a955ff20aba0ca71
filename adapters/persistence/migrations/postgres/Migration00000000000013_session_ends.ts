/** Called beside `commit_change_1`, which only makes sessions last longer: one that waits for a browser ends at a time. */
export const statements = [
  `create function session_ends_1(p_tenant text, p_session text, p_at bigint)
      returns void language sql volatile set search_path from current as $$
        update sessions set expires_at = p_at where tenant_id = p_tenant and id = p_session $$;`,
];
