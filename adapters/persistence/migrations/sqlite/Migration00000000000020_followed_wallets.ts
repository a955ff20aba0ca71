import { Migration } from '@mikro-orm/migrations';
import { FOLLOWED_WALLETS, inSqlite } from '../both-dialects.ts';

export class Migration00000000000020_followed_wallets extends Migration {
  override name = 'Migration00000000000020_followed_wallets';

  override up(): void {
    for (const statement of FOLLOWED_WALLETS.map(inSqlite)) this.addSql(statement);
  }
}
