import { Migration } from '@mikro-orm/migrations';

export class Migration00000000000011_client_secret_revision extends Migration {
  override name = 'Migration00000000000011_client_secret_revision';

  override up(): void | Promise<void> {
    this.addSql(
      `alter table "clients" add "secret_revision" int not null default 0, add "former_secret_until" bigint null;`,
    );
  }
}
