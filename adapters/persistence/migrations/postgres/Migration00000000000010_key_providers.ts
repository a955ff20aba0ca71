import { Migration } from '@mikro-orm/migrations';
import { KEY_PROVIDERS } from '../both-dialects.ts';

export class Migration00000000000010_key_providers extends Migration {
  override name = 'Migration00000000000010_key_providers';

  override up(): void {
    for (const statement of KEY_PROVIDERS) this.addSql(statement);
  }
}
