import { Migration } from '@mikro-orm/migrations';
import { inSqlite, PROFILES } from '../both-dialects.ts';

export class Migration00000000000016_profiles extends Migration {
  override name = 'Migration00000000000016_profiles';

  override up(): void {
    for (const statement of PROFILES.map(inSqlite)) this.addSql(statement);
  }
}
