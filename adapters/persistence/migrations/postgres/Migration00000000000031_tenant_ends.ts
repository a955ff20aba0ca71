import { TENANT_ENDS } from '../both-dialects.ts';
import { Migration } from '../migration.ts';

export class Migration00000000000031_tenant_ends extends Migration {
  readonly name = 'Migration00000000000031_tenant_ends';

  up(): void {
    for (const statement of TENANT_ENDS) this.addSql(statement);
  }
}
