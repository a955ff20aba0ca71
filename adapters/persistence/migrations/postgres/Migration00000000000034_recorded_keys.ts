import { RECORDED_KEYS } from '../both-dialects.ts';
import { Migration } from '../migration.ts';

export class Migration00000000000034_recorded_keys extends Migration {
  readonly name = 'Migration00000000000034_recorded_keys';

  up(): void {
    for (const statement of RECORDED_KEYS) this.addSql(statement);
  }
}
