import { inSqlite, SEALING_KEYS } from '../both-dialects.ts';
import { Migration } from '../migration.ts';

export class Migration00000000000005_sealing_keys extends Migration {
  readonly name = 'Migration00000000000005_sealing_keys';

  up(): void {
    for (const statement of SEALING_KEYS.map(inSqlite)) this.addSql(statement);
  }
}
