import { ORGANIZATIONS } from '../both-dialects.ts';
import { Migration } from '../migration.ts';

export class Migration00000000000021_organizations extends Migration {
  readonly name = 'Migration00000000000021_organizations';

  up(): void {
    for (const statement of ORGANIZATIONS) this.addSql(statement);
  }
}
