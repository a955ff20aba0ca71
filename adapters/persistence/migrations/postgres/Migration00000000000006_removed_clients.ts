import { REMOVED_CLIENTS } from '../both-dialects.ts';
import { Migration } from '../migration.ts';

export class Migration00000000000006_removed_clients extends Migration {
  readonly name = 'Migration00000000000006_removed_clients';

  up(): void {
    for (const statement of REMOVED_CLIENTS) this.addSql(statement);
  }
}
