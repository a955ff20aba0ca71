import { Migration } from '@mikro-orm/migrations';

export class Migration00000000000001_initial extends Migration {
  override name = 'Migration00000000000001_initial';

  override up(): void | Promise<void> {
    this.addSql(
      `create table "clients" ("client_id" varchar(255) not null, "tenant_id" varchar(255) null, "roles" jsonb not null, "description" text null, "allowed_presentation_configs" jsonb null, "allowed_issuance_configs" jsonb null, "secret_hash" text not null, "pick_up" jsonb null, "version" int not null, "created_at" bigint not null, "updated_at" bigint not null, primary key ("client_id"));`,
    );
    this.addSql(`create index "clients_of_tenant" on "clients" ("tenant_id", "client_id");`);

    this.addSql(
      `create table "credential_configurations" ("tenant_id" varchar(255) not null, "id" varchar(255) not null, "body" text not null, "created_at" bigint not null, "updated_at" bigint not null, primary key ("tenant_id", "id"));`,
    );

    this.addSql(
      `create table "grants" ("tenant_id" varchar(255) not null, "id" varchar(255) not null, "kind" varchar(255) not null, "session_id" varchar(255) not null, "public_id" varchar(255) not null, "code_hash" varchar(255) not null, "tx_code_hash" varchar(255) null, "configuration_ids" text not null, "expires_at" bigint not null, "attempts" int not null, "consumed_at" bigint null, primary key ("tenant_id", "id"));`,
    );
    this.addSql(`create index "grants_by_expiry" on "grants" using brin ("expires_at");`);
    this.addSql(`alter table "grants" add constraint "grants_code" unique ("tenant_id", "code_hash");`);

    this.addSql(
      `create table "issuance_configurations" ("tenant_id" varchar(255) not null, "id" varchar(255) not null, "body" text not null, "created_at" bigint not null, "updated_at" bigint not null, primary key ("tenant_id", "id"));`,
    );

    this.addSql(
      `create table "issued_batches" ("tenant_id" varchar(255) not null, "session_id" varchar(255) not null, "id" varchar(255) not null, "credential_configuration_id" varchar(255) not null, "count" int not null, "status_list_id" varchar(255) null, "first_counter" int null, "issued_at" bigint not null, primary key ("tenant_id", "session_id", "id"));`,
    );

    this.addSql(
      `create table "key_chains" ("tenant_id" varchar(255) not null, "id" varchar(255) not null, "body" text not null, "created_at" bigint not null, "updated_at" bigint not null, primary key ("tenant_id", "id"));`,
    );

    this.addSql(
      `create table "leases" ("name" varchar(255) not null, "holder" varchar(255) not null, "expires_at" bigint not null, primary key ("name"));`,
    );

    this.addSql(
      `create table "presentation_configurations" ("tenant_id" varchar(255) not null, "id" varchar(255) not null, "body" text not null, "created_at" bigint not null, "updated_at" bigint not null, primary key ("tenant_id", "id"));`,
    );

    this.addSql(
      `create table "session_events" ("tenant_id" varchar(255) not null, "session_id" varchar(255) not null, "version" int not null, "status" varchar(255) not null, "at" bigint not null, primary key ("tenant_id", "session_id", "version"));`,
    );

    this.addSql(
      `create table "sessions" ("tenant_id" varchar(255) not null, "id" varchar(255) not null, "public_id" varchar(255) not null, "kind" varchar(255) not null, "status" varchar(255) not null, "version" int not null, "created_at" bigint not null, "updated_at" bigint not null, "expires_at" bigint not null, "configuration_ids" text not null, "use_dc_api" boolean not null, "request" text null, "outcome" text null, "issued_mask" int not null, "revoked_mask" int not null, "issued_count" int not null, "claimed_at" bigint null, primary key ("tenant_id", "id"));`,
    );
    this.addSql(`create index "sessions_by_creation" on "sessions" ("tenant_id", "created_at", "id");`);
    this.addSql(`create index "sessions_by_expiry" on "sessions" using brin ("expires_at");`);
    this.addSql(
      `alter table "sessions" add constraint "sessions_public_id" unique ("tenant_id", "public_id");`,
    );

    this.addSql(
      `create table "status_entries" ("tenant_id" varchar(255) not null, "list_id" varchar(255) not null, "idx" int not null, "status" int not null, "changed_version" int not null, primary key ("tenant_id", "list_id", "idx"));`,
    );
    this.addSql(
      `create index "status_entries_changed" on "status_entries" ("tenant_id", "list_id", "changed_version");`,
    );

    this.addSql(
      `create table "status_lists" ("tenant_id" varchar(255) not null, "id" varchar(255) not null, "credential_configuration_id" varchar(255) null, "key_chain_id" varchar(255) null, "bits" int not null, "capacity" int not null, "ttl_seconds" int not null, "immediate_update" boolean not null, "enable_aggregation" boolean not null, "secret" text not null, "used_entries" int not null, "version" int not null, "created_at" bigint not null, "token" text null, "token_version" int null, "token_issued_at" bigint null, "token_expires_at" bigint null, primary key ("tenant_id", "id"));`,
    );

    this.addSql(
      `create table "tenants" ("id" varchar(255) not null, "name" varchar(255) not null, "description" text null, "status" varchar(255) not null, "session_config" jsonb null, "status_list_config" jsonb null, "revision" int not null, "version" int not null, "created_at" bigint not null, "updated_at" bigint not null, primary key ("id"));`,
    );

    this.addSql(
      `create table "used_values" ("tenant_id" varchar(255) not null, "kind" varchar(255) not null, "hash" varchar(255) not null, "expires_at" bigint not null, primary key ("tenant_id", "kind", "hash"));`,
    );
    this.addSql(`create index "used_values_by_expiry" on "used_values" using brin ("expires_at");`);
  }
}
