import { Migration } from '@mikro-orm/migrations';
import { ISSUANCE } from '../both-dialects.ts';

export class Migration00000000000002_issuance extends Migration {
  override name = 'Migration00000000000002_issuance';

  override up(): void {
    for (const statement of ISSUANCE) this.addSql(statement);
  }
}
