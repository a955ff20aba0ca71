import { Migration } from '@mikro-orm/migrations';
import { inSqlite, WEBHOOK_SECRETS } from '../both-dialects.ts';

export class Migration00000000000012_webhook_secrets extends Migration {
  override name = 'Migration00000000000012_webhook_secrets';

  override up(): void {
    for (const statement of WEBHOOK_SECRETS.map(inSqlite)) this.addSql(statement);
    this.addSql(`update tenants set revisions = json_set(revisions, '$.webhookSecret', 0)`);
  }
}
