import { RENEWALS } from '../both-dialects.ts';
import { Migration } from '../migration.ts';

export class Migration00000000000014_renewals extends Migration {
  readonly name = 'Migration00000000000014_renewals';

  up(): void {
    for (const statement of RENEWALS) this.addSql(statement);
  }
}
