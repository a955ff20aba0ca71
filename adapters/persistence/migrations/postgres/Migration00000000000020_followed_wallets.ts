import { BOTH_DIALECTS } from '../both-dialects.ts';

/**
 * Nobody waits for a row that is there: an update of it would lock it, and all who issue to wallets of one provider would
 * wait for each other.
 */
const ADD_LISTS = `insert into followed_lists (tenant_id, id, place, next_check_at, failures)
          select p_tenant, l.id, l.place, p_now, 0 from unnest(p_lists, p_places) as l(id, place) order by l.id
          on conflict do nothing;`;

/**
 * Called beside `commit_change_1`, in the same statement: what the credentials of a change follow, and what a deferred
 * transaction holds for later. A list that nothing followed for a while is followed again: its mark goes under a lock, so
 * that it is not removed any more, and one that was removed just before that is added once more.
 */
export const statements = [
  ...BOTH_DIALECTS.Migration00000000000020_followed_wallets,
  `create function follow_wallets_1(p_tenant text, p_now bigint, p_transaction text, p_held text,
        p_session text, p_batch text, p_ends_at bigint, p_lists text[], p_places text[], p_of_list text[], p_indices int[])
      returns void language plpgsql set search_path from current as $$
      begin
        update deferred_transactions set wallet_statuses = p_held where tenant_id = p_tenant and id = p_transaction;
        insert into followed_statuses (tenant_id, list_id, idx, batch_id, session_id, ends_at)
          select p_tenant, s.list_id, s.idx, p_batch, p_session, p_ends_at
          from unnest(p_of_list, p_indices) as s(list_id, idx)
          on conflict do nothing;
        ${ADD_LISTS}
        update followed_lists set idle_since = null
          where tenant_id = p_tenant and id = any(p_lists) and idle_since is not null;
        ${ADD_LISTS}
      end $$;`,
];
