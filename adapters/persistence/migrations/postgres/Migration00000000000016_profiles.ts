import { PROFILES } from '../both-dialects.ts';
import { Migration } from '../migration.ts';

export class Migration00000000000016_profiles extends Migration {
  readonly name = 'Migration00000000000016_profiles';

  up(): void {
    for (const statement of PROFILES) this.addSql(statement);
  }
}
