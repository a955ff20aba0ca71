import { inSqlite, PENDING_DELIVERIES } from '../both-dialects.ts';
import { Migration } from '../migration.ts';

export class Migration00000000000025_pending_deliveries extends Migration {
  readonly name = 'Migration00000000000025_pending_deliveries';

  up(): void {
    for (const statement of PENDING_DELIVERIES.map(inSqlite)) this.addSql(statement);
  }
}
