import { FORGOTTEN_KEYS, inSqlite } from '../both-dialects.ts';
import { Migration } from '../migration.ts';

/** What keys of wallets are left of deferred transactions that were over before they were erased with the end. */
export class Migration00000000000017_forgotten_keys extends Migration {
  readonly name = 'Migration00000000000017_forgotten_keys';

  up(): void {
    for (const statement of FORGOTTEN_KEYS.map(inSqlite)) this.addSql(statement);
  }
}
