import { Migration } from '@mikro-orm/migrations';
import { INITIAL, inSqlite } from '../both-dialects.ts';

export class Migration00000000000001_initial extends Migration {
  override name = 'Migration00000000000001_initial';

  override up(): void {
    for (const statement of INITIAL.map(inSqlite)) this.addSql(statement);
  }
}
