import { Migration } from '@mikro-orm/migrations';
import { AUDIT } from '../both-dialects.ts';

export class Migration00000000000004_audit extends Migration {
  override name = 'Migration00000000000004_audit';

  override up(): void {
    for (const statement of AUDIT) this.addSql(statement);
  }
}
