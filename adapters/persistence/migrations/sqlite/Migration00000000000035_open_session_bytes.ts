import { inSqlite, OPEN_SESSION_BYTES } from '../both-dialects.ts';
import { Migration } from '../migration.ts';

/** The quota of open sessions counts sessions that are created from here on. */
export class Migration00000000000035_open_session_bytes extends Migration {
  readonly name = 'Migration00000000000035_open_session_bytes';

  up(): void {
    for (const statement of OPEN_SESSION_BYTES.map(inSqlite)) this.addSql(statement);
  }
}
