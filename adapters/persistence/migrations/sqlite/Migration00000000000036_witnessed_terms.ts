import { inSqlite, WITNESSED_TERMS } from '../both-dialects.ts';
import { Migration } from '../migration.ts';

export class Migration00000000000036_witnessed_terms extends Migration {
  readonly name = 'Migration00000000000036_witnessed_terms';

  up(): void {
    for (const statement of WITNESSED_TERMS.map(inSqlite)) this.addSql(statement);
  }
}
