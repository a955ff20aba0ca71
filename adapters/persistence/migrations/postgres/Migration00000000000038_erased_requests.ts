/** `erase_request_1` is called beside `commit_change_1`, in the same statement, for a session that ended without a wallet. */
export const statements = [
  `create function erase_request_1(p_tenant text, p_session text, p_limit int)
      returns void language sql volatile set search_path from current as $$
        update sessions set request = null
        where tenant_id = p_tenant and id = p_session and status in ('failed', 'expired') and issued_mask = 0
          and issued_count = 0 and octet_length(request) > p_limit $$;`,
];
