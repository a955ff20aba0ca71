import { Migration } from '@mikro-orm/migrations';
import { inSqlite, REMOVED_CLIENTS } from '../both-dialects.ts';

export class Migration00000000000006_removed_clients extends Migration {
  override name = 'Migration00000000000006_removed_clients';

  override up(): void {
    for (const statement of REMOVED_CLIENTS.map(inSqlite)) this.addSql(statement);
  }
}
