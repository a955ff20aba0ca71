import { Migration } from '@mikro-orm/migrations';
import { WEBHOOK_SECRETS } from '../both-dialects.ts';

export class Migration00000000000012_webhook_secrets extends Migration {
  override name = 'Migration00000000000012_webhook_secrets';

  override up(): void {
    for (const statement of WEBHOOK_SECRETS) this.addSql(statement);
    this.addSql(`update tenants set revisions = jsonb_set(revisions, '{webhookSecret}', '0')`);
  }
}
