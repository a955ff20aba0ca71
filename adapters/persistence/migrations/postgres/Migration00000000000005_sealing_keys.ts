import { Migration } from '@mikro-orm/migrations';
import { SEALING_KEYS } from '../both-dialects.ts';

export class Migration00000000000005_sealing_keys extends Migration {
  override name = 'Migration00000000000005_sealing_keys';

  override up(): void {
    for (const statement of SEALING_KEYS) this.addSql(statement);
  }
}
