import { Migration } from '@mikro-orm/migrations';

export class Migration00000000000004_audit extends Migration {
  override name = 'Migration00000000000004_audit';

  override up(): void | Promise<void> {
    this.addSql(
      `create table \`audit_entries\` (\`tenant_id\` text not null, \`sequence\` bigint not null, \`at\` bigint not null, \`actor\` text not null, \`action\` text not null, \`kind\` text not null, \`target\` text not null, \`detail\` text not null, \`hash\` text not null, primary key (\`tenant_id\`, \`sequence\`));`,
    );
    this.addSql(
      `create index \`audit_entries_of_target\` on \`audit_entries\` (\`tenant_id\`, \`target\`, \`sequence\`);`,
    );

    this.addSql(
      `create table \`audit_heads\` (\`tenant_id\` text not null primary key, \`sequence\` bigint not null, \`hash\` text not null, \`seal\` text not null);`,
    );
  }

  override down(): void | Promise<void> {
    this.addSql(`drop table if exists \`audit_entries\`;`);
    this.addSql(`drop table if exists \`audit_heads\`;`);
  }
}
