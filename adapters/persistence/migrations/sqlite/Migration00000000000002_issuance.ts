import { ISSUANCE, inSqlite } from '../both-dialects.ts';
import { Migration } from '../migration.ts';

export class Migration00000000000002_issuance extends Migration {
  readonly name = 'Migration00000000000002_issuance';

  up(): void {
    for (const statement of ISSUANCE.map(inSqlite)) this.addSql(statement);
  }
}
