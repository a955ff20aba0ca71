import { Migration } from '@mikro-orm/migrations';
import { RENEWALS } from '../both-dialects.ts';

export class Migration00000000000014_renewals extends Migration {
  override name = 'Migration00000000000014_renewals';

  override up(): void {
    for (const statement of RENEWALS) this.addSql(statement);
  }
}
