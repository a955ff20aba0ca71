import { inSqlite, WEBHOOK_SECRETS } from '../both-dialects.ts';
import { Migration } from '../migration.ts';

export class Migration00000000000012_webhook_secrets extends Migration {
  readonly name = 'Migration00000000000012_webhook_secrets';

  up(): void {
    for (const statement of WEBHOOK_SECRETS.map(inSqlite)) this.addSql(statement);
    this.addSql(`update tenants set revisions = json_set(revisions, '$.webhookSecret', 0)`);
  }
}
