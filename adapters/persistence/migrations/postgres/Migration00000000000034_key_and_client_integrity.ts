import { CLIENT_MACS, RECORDED_KEYS, REVOKED_SUBJECTS } from '../both-dialects.ts';
import { Migration } from '../migration.ts';

export class Migration00000000000034_key_and_client_integrity extends Migration {
  readonly name = 'Migration00000000000034_key_and_client_integrity';

  up(): void {
    for (const statement of [...RECORDED_KEYS, ...CLIENT_MACS, ...REVOKED_SUBJECTS]) this.addSql(statement);
  }
}
