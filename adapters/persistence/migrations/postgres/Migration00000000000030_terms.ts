import { TERMS } from '../both-dialects.ts';
import { Migration } from '../migration.ts';

export class Migration00000000000030_terms extends Migration {
  readonly name = 'Migration00000000000030_terms';

  up(): void {
    for (const statement of TERMS) this.addSql(statement);
  }
}
