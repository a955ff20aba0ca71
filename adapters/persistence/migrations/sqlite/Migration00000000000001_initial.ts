import { INITIAL, inSqlite } from '../both-dialects.ts';
import { Migration } from '../migration.ts';

export class Migration00000000000001_initial extends Migration {
  readonly name = 'Migration00000000000001_initial';

  up(): void {
    for (const statement of INITIAL.map(inSqlite)) this.addSql(statement);
  }
}
