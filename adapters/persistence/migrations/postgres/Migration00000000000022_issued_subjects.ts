import { ISSUED_SUBJECTS } from '../both-dialects.ts';
import { Migration } from '../migration.ts';

export class Migration00000000000022_issued_subjects extends Migration {
  readonly name = 'Migration00000000000022_issued_subjects';

  up(): void {
    for (const statement of ISSUED_SUBJECTS) this.addSql(statement);
  }
}
