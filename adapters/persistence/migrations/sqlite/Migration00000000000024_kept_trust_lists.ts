import { inSqlite, KEPT_TRUST_LISTS } from '../both-dialects.ts';
import { Migration } from '../migration.ts';

export class Migration00000000000024_kept_trust_lists extends Migration {
  readonly name = 'Migration00000000000024_kept_trust_lists';

  up(): void {
    for (const statement of KEPT_TRUST_LISTS.map(inSqlite)) this.addSql(statement);
  }
}
