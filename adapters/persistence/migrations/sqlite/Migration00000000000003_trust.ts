import { Migration } from '@mikro-orm/migrations';
import { inSqlite, TRUST } from '../both-dialects.ts';

export class Migration00000000000003_trust extends Migration {
  override name = 'Migration00000000000003_trust';

  override up(): void {
    for (const statement of TRUST.map(inSqlite)) this.addSql(statement);
  }
}
