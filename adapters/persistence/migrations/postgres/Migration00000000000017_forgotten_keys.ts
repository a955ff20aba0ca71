import { FORGOTTEN_KEYS } from '../both-dialects.ts';
import { Migration } from '../migration.ts';

/**
 * A deferred transaction that is over keeps no keys of the wallet, also when a process of an older release ends it. SQLite
 * has one writer, who sees to it in the statement.
 */
export class Migration00000000000017_forgotten_keys extends Migration {
  readonly name = 'Migration00000000000017_forgotten_keys';

  up(): void {
    this.addSql(`create function forget_holder_keys() returns trigger language plpgsql as $$
      begin
        new.holder_keys := '[]';
        return new;
      end $$;`);
    this.addSql(`create trigger forget_holder_keys before update of status on "deferred_transactions"
      for each row when (new.status in ('retrieved', 'failed', 'expired')) execute function forget_holder_keys();`);
    for (const statement of FORGOTTEN_KEYS) this.addSql(statement);
  }
}
