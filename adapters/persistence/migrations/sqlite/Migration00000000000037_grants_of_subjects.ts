import { GRANTS_OF_SUBJECTS, inSqlite } from '../both-dialects.ts';
import { Migration } from '../migration.ts';

export class Migration00000000000037_grants_of_subjects extends Migration {
  readonly name = 'Migration00000000000037_grants_of_subjects';

  up(): void {
    for (const statement of GRANTS_OF_SUBJECTS) this.addSql(inSqlite(statement));
  }
}
