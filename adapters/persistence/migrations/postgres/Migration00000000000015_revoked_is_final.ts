/**
 * A revoked credential stays revoked, whoever writes at the same moment: a change that decided on what was there before
 * ends as one whose part did not find what it expects. SQLite has one writer, who sees to it in the statement.
 */
export const statements = [
  `create function keep_revoked() returns trigger language plpgsql as $$
      begin
        raise exception 'statuses' using errcode = 'VC001';
      end $$;`,
  `create trigger keep_revoked before update of status on "status_entries"
      for each row when (old.status = 1 and new.status <> 1) execute function keep_revoked();`,
];
