import { inSqlite, TRUST } from '../both-dialects.ts';
import { Migration } from '../migration.ts';

export class Migration00000000000003_trust extends Migration {
  readonly name = 'Migration00000000000003_trust';

  up(): void {
    for (const statement of TRUST.map(inSqlite)) this.addSql(statement);
  }
}
