import { BOTH_DIALECTS } from '../both-dialects.ts';

/** With a function that is called beside `commit_change_1`. When somebody else may make a delivery, the database's clock says. */
export const statements = [
  ...BOTH_DIALECTS.Migration00000000000025_pending_deliveries,
  `create function mark_delivery_1(p_tenant text, p_session text, p_id text, p_abandoned_after bigint)
      returns void language plpgsql volatile set search_path from current as $$
      begin
        if p_abandoned_after is null then
          delete from pending_deliveries d where d.tenant_id = p_tenant and d.session_id = p_session and d.id = p_id;
        else
          insert into pending_deliveries (tenant_id, session_id, id, due_at)
            values (p_tenant, p_session, p_id,
              floor(extract(epoch from clock_timestamp()) * 1000)::bigint + p_abandoned_after)
            on conflict (tenant_id, session_id, id) do update set due_at = excluded.due_at;
        end if;
      end $$;`,
];
