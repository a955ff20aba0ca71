import { Migration } from '@mikro-orm/migrations';

export class Migration00000000000005_sealing_keys extends Migration {
  override name = 'Migration00000000000005_sealing_keys';

  override up(): void | Promise<void> {
    this.addSql(
      `create table \`sealing_keys\` (\`id\` text not null primary key, \`first_used_at\` bigint not null);`,
    );
  }

  override down(): void | Promise<void> {
    this.addSql(`drop table if exists \`sealing_keys\`;`);
  }
}
