import { Migration } from '../migration.ts';

/** On PostgreSQL this makes a function; SQLite has the statement in `sqlite/commit.ts`. */
export class Migration00000000000013_session_ends extends Migration {
  readonly name = 'Migration00000000000013_session_ends';

  up(): void {
    this.addSql('select 1');
  }
}
