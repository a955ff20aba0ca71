import { Migration } from '../migration.ts';

export class Migration00000000000011_client_secret_revision extends Migration {
  readonly name = 'Migration00000000000011_client_secret_revision';

  up(): void {
    this.addSql(`alter table \`clients\` add column \`secret_revision\` integer not null default 0;`);
    this.addSql(`alter table \`clients\` add column \`former_secret_until\` bigint null;`);
  }
}
