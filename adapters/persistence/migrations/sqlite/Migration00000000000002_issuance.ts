import { Migration } from '@mikro-orm/migrations';

export class Migration00000000000002_issuance extends Migration {
  override name = 'Migration00000000000002_issuance';

  override up(): void | Promise<void> {
    this.addSql(
      `create table \`authorizations\` (\`tenant_id\` text not null, \`id\` text not null, \`version\` integer not null, \`document\` text not null, \`expires_at\` bigint not null, primary key (\`tenant_id\`, \`id\`));`,
    );
    this.addSql(`create index \`authorizations_by_expiry\` on \`authorizations\` (\`expires_at\`);`);

    this.addSql(
      `create table \`deferred_transactions\` (\`tenant_id\` text not null, \`id\` text not null, \`session_id\` text not null, \`public_id\` text not null, \`grant_id\` text null, \`credential_configuration_id\` text not null, \`holder_keys\` text not null, \`status\` text not null, \`interval_seconds\` integer not null, \`credentials\` text null, \`batch_id\` text null, \`error_message\` text null, \`created_at\` bigint not null, \`updated_at\` bigint not null, \`expires_at\` bigint not null, primary key (\`tenant_id\`, \`id\`));`,
    );
    this.addSql(
      `create index \`deferred_by_session\` on \`deferred_transactions\` (\`tenant_id\`, \`session_id\`);`,
    );
    this.addSql(`create index \`deferred_by_expiry\` on \`deferred_transactions\` (\`expires_at\`);`);

    this.addSql(
      `create table \`session_subjects\` (\`tenant_id\` text not null, \`subject_hash\` text not null, \`session_id\` text not null, primary key (\`tenant_id\`, \`subject_hash\`, \`session_id\`));`,
    );
    this.addSql(
      `create index \`session_subjects_by_session\` on \`session_subjects\` (\`tenant_id\`, \`session_id\`);`,
    );

    this.addSql(`alter table \`grants\` add column \`server\` text not null default 'built-in';`);
    this.addSql(`alter table \`grants\` add column \`document\` text null;`);
    this.addSql(`alter table \`grants\` add column \`holder\` text null;`);
    this.addSql(`alter table \`grants\` add column \`generation\` integer not null default 0;`);
    this.addSql(`alter table \`grants\` add column \`revoked_at\` bigint null;`);
  }

  override down(): void | Promise<void> {
    this.addSql(`drop table if exists \`authorizations\`;`);
    this.addSql(`drop table if exists \`deferred_transactions\`;`);
    this.addSql(`drop table if exists \`session_subjects\`;`);

    this.addSql(`alter table \`grants\` drop column \`server\`;`);
    this.addSql(`alter table \`grants\` drop column \`document\`;`);
    this.addSql(`alter table \`grants\` drop column \`holder\`;`);
    this.addSql(`alter table \`grants\` drop column \`generation\`;`);
    this.addSql(`alter table \`grants\` drop column \`revoked_at\`;`);
  }
}
