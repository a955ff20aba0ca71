import { BOTH_DIALECTS } from '../both-dialects.ts';

/**
 * A deferred transaction that is over keeps no keys of the wallet, also when a process of an older release ends it. SQLite
 * has one writer, who sees to it in the statement.
 */
export const statements = [
  `create function forget_holder_keys() returns trigger language plpgsql as $$
      begin
        new.holder_keys := '[]';
        return new;
      end $$;`,
  `create trigger forget_holder_keys before update of status on "deferred_transactions"
      for each row when (new.status in ('retrieved', 'failed', 'expired')) execute function forget_holder_keys();`,
  ...BOTH_DIALECTS.Migration00000000000017_forgotten_keys,
];
