import { DUE_ROWS, inSqlite } from '../both-dialects.ts';
import { Migration } from '../migration.ts';

export class Migration00000000000033_due_rows extends Migration {
  readonly name = 'Migration00000000000033_due_rows';

  up(): void {
    for (const statement of DUE_ROWS) this.addSql(inSqlite(statement));
  }
}
