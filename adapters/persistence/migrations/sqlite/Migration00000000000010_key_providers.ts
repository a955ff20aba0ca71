import { inSqlite, KEY_PROVIDERS } from '../both-dialects.ts';
import { Migration } from '../migration.ts';

export class Migration00000000000010_key_providers extends Migration {
  readonly name = 'Migration00000000000010_key_providers';

  up(): void {
    for (const statement of KEY_PROVIDERS.map(inSqlite)) this.addSql(statement);
  }
}
