import { FOLLOWED_WALLETS, inSqlite } from '../both-dialects.ts';
import { Migration } from '../migration.ts';

export class Migration00000000000020_followed_wallets extends Migration {
  readonly name = 'Migration00000000000020_followed_wallets';

  up(): void {
    for (const statement of FOLLOWED_WALLETS.map(inSqlite)) this.addSql(statement);
  }
}
