import { Migration } from '../migration.ts';

export class Migration00000000000011_client_secret_revision extends Migration {
  readonly name = 'Migration00000000000011_client_secret_revision';

  up(): void {
    this.addSql(
      `alter table "clients" add "secret_revision" int not null default 0, add "former_secret_until" bigint null;`,
    );
  }
}
