import { Migration } from '@mikro-orm/migrations';

/** On PostgreSQL this makes a function; SQLite has the statement in `sqlite/commit.ts`. */
export class Migration00000000000013_session_ends extends Migration {
  override name = 'Migration00000000000013_session_ends';

  override up(): void {
    this.addSql('select 1');
  }
}
