import { BOTH_DIALECTS } from '../both-dialects.ts';

/** Block range indexes of these tables match every range that has ever had an expired row, so that jobs read all of them. */
const TREES = ['sessions', 'grants', 'issued_subjects'];

/** Indexes that lead jobs to the rows that are due. On SQLite the indexes of `TREES` are trees already. */
export const statements = [
  // As in the migration before: each change reads its tenant first, and waits there without holding another lock.
  'lock table "tenants" in access exclusive mode;',
  ...TREES.flatMap((table) => [`drop index "${table}_by_expiry";`, `create index "${table}_by_expiry" on "${table}" ("expires_at");`]),
  ...BOTH_DIALECTS.Migration00000000000033_due_rows,
  // A process of an older release raises the revision of the tenant alone. Revisions are 64-bit numbers.
  `create or replace function raise_all_revisions() returns trigger language plpgsql as $$
      begin
        if new.revision <> old.revision and new.revisions = old.revisions then
          new.revisions := jsonb_set(new.revisions, '{all}', to_jsonb((new.revisions->>'all')::bigint + 1));
        end if;
        return new;
      end $$;`,
];
