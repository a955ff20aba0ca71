import { Migration } from '@mikro-orm/migrations';

export class Migration00000000000001_initial extends Migration {
  override name = 'Migration00000000000001_initial';

  override up(): void | Promise<void> {
    this.addSql(
      `create table \`clients\` (\`client_id\` text not null primary key, \`tenant_id\` text null, \`roles\` json not null, \`description\` text null, \`allowed_presentation_configs\` json null, \`allowed_issuance_configs\` json null, \`secret_hash\` text not null, \`pick_up\` json null, \`version\` integer not null, \`created_at\` bigint not null, \`updated_at\` bigint not null);`,
    );
    this.addSql(`create index \`clients_of_tenant\` on \`clients\` (\`tenant_id\`, \`client_id\`);`);

    this.addSql(
      `create table \`credential_configurations\` (\`tenant_id\` text not null, \`id\` text not null, \`body\` text not null, \`created_at\` bigint not null, \`updated_at\` bigint not null, primary key (\`tenant_id\`, \`id\`));`,
    );

    this.addSql(
      `create table \`grants\` (\`tenant_id\` text not null, \`id\` text not null, \`kind\` text not null, \`session_id\` text not null, \`public_id\` text not null, \`code_hash\` text not null, \`tx_code_hash\` text null, \`configuration_ids\` text not null, \`expires_at\` bigint not null, \`attempts\` integer not null, \`consumed_at\` bigint null, primary key (\`tenant_id\`, \`id\`));`,
    );
    this.addSql(`create index \`grants_by_expiry\` on \`grants\` (\`expires_at\`);`);
    this.addSql(`create unique index \`grants_code\` on \`grants\` (\`tenant_id\`, \`code_hash\`);`);

    this.addSql(
      `create table \`issuance_configurations\` (\`tenant_id\` text not null, \`id\` text not null, \`body\` text not null, \`created_at\` bigint not null, \`updated_at\` bigint not null, primary key (\`tenant_id\`, \`id\`));`,
    );

    this.addSql(
      `create table \`issued_batches\` (\`tenant_id\` text not null, \`session_id\` text not null, \`id\` text not null, \`credential_configuration_id\` text not null, \`count\` integer not null, \`status_list_id\` text null, \`first_counter\` integer null, \`issued_at\` bigint not null, primary key (\`tenant_id\`, \`session_id\`, \`id\`));`,
    );

    this.addSql(
      `create table \`key_chains\` (\`tenant_id\` text not null, \`id\` text not null, \`body\` text not null, \`created_at\` bigint not null, \`updated_at\` bigint not null, primary key (\`tenant_id\`, \`id\`));`,
    );

    this.addSql(
      `create table \`leases\` (\`name\` text not null primary key, \`holder\` text not null, \`expires_at\` bigint not null);`,
    );

    this.addSql(
      `create table \`presentation_configurations\` (\`tenant_id\` text not null, \`id\` text not null, \`body\` text not null, \`created_at\` bigint not null, \`updated_at\` bigint not null, primary key (\`tenant_id\`, \`id\`));`,
    );

    this.addSql(
      `create table \`session_events\` (\`tenant_id\` text not null, \`session_id\` text not null, \`version\` integer not null, \`status\` text not null, \`at\` bigint not null, primary key (\`tenant_id\`, \`session_id\`, \`version\`));`,
    );

    this.addSql(
      `create table \`sessions\` (\`tenant_id\` text not null, \`id\` text not null, \`public_id\` text not null, \`kind\` text not null, \`status\` text not null, \`version\` integer not null, \`created_at\` bigint not null, \`updated_at\` bigint not null, \`expires_at\` bigint not null, \`configuration_ids\` text not null, \`use_dc_api\` integer not null, \`request\` text null, \`outcome\` text null, \`issued_mask\` integer not null, \`revoked_mask\` integer not null, \`issued_count\` integer not null, \`claimed_at\` bigint null, primary key (\`tenant_id\`, \`id\`));`,
    );
    this.addSql(
      `create index \`sessions_by_creation\` on \`sessions\` (\`tenant_id\`, \`created_at\`, \`id\`);`,
    );
    this.addSql(`create index \`sessions_by_expiry\` on \`sessions\` (\`expires_at\`);`);
    this.addSql(`create unique index \`sessions_public_id\` on \`sessions\` (\`tenant_id\`, \`public_id\`);`);

    this.addSql(
      `create table \`status_entries\` (\`tenant_id\` text not null, \`list_id\` text not null, \`idx\` integer not null, \`status\` integer not null, \`changed_version\` integer not null, primary key (\`tenant_id\`, \`list_id\`, \`idx\`));`,
    );
    this.addSql(
      `create index \`status_entries_changed\` on \`status_entries\` (\`tenant_id\`, \`list_id\`, \`changed_version\`);`,
    );

    this.addSql(
      `create table \`status_lists\` (\`tenant_id\` text not null, \`id\` text not null, \`credential_configuration_id\` text null, \`key_chain_id\` text null, \`bits\` integer not null, \`capacity\` integer not null, \`ttl_seconds\` integer not null, \`immediate_update\` integer not null, \`enable_aggregation\` integer not null, \`secret\` text not null, \`used_entries\` integer not null, \`version\` integer not null, \`created_at\` bigint not null, \`token\` text null, \`token_version\` integer null, \`token_issued_at\` bigint null, \`token_expires_at\` bigint null, primary key (\`tenant_id\`, \`id\`));`,
    );

    this.addSql(
      `create table \`tenants\` (\`id\` text not null primary key, \`name\` text not null, \`description\` text null, \`status\` text not null, \`session_config\` json null, \`status_list_config\` json null, \`revision\` integer not null, \`version\` integer not null, \`created_at\` bigint not null, \`updated_at\` bigint not null);`,
    );

    this.addSql(
      `create table \`used_values\` (\`tenant_id\` text not null, \`kind\` text not null, \`hash\` text not null, \`expires_at\` bigint not null, primary key (\`tenant_id\`, \`kind\`, \`hash\`));`,
    );
    this.addSql(`create index \`used_values_by_expiry\` on \`used_values\` (\`expires_at\`);`);
  }
}
