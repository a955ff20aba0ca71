import { AUDIT } from '../both-dialects.ts';
import { Migration } from '../migration.ts';

export class Migration00000000000004_audit extends Migration {
  readonly name = 'Migration00000000000004_audit';

  up(): void {
    for (const statement of AUDIT) this.addSql(statement);
  }
}
