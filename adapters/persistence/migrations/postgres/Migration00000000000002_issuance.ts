import { Migration } from '@mikro-orm/migrations';

export class Migration00000000000002_issuance extends Migration {
  override name = 'Migration00000000000002_issuance';

  override up(): void | Promise<void> {
    this.addSql(
      `create table "authorizations" ("tenant_id" varchar(255) not null, "id" varchar(255) not null, "version" int not null, "document" text not null, "expires_at" bigint not null, primary key ("tenant_id", "id"));`,
    );
    this.addSql(`create index "authorizations_by_expiry" on "authorizations" using brin ("expires_at");`);

    this.addSql(
      `create table "deferred_transactions" ("tenant_id" varchar(255) not null, "id" varchar(255) not null, "session_id" varchar(255) not null, "public_id" varchar(255) not null, "grant_id" varchar(255) null, "credential_configuration_id" varchar(255) not null, "holder_keys" text not null, "status" varchar(255) not null, "interval_seconds" int not null, "credentials" text null, "batch_id" varchar(255) null, "error_message" text null, "created_at" bigint not null, "updated_at" bigint not null, "expires_at" bigint not null, primary key ("tenant_id", "id"));`,
    );
    this.addSql(`create index "deferred_by_session" on "deferred_transactions" ("tenant_id", "session_id");`);
    this.addSql(`create index "deferred_by_expiry" on "deferred_transactions" using brin ("expires_at");`);

    this.addSql(
      `create table "session_subjects" ("tenant_id" varchar(255) not null, "subject_hash" varchar(255) not null, "session_id" varchar(255) not null, primary key ("tenant_id", "subject_hash", "session_id"));`,
    );
    this.addSql(
      `create index "session_subjects_by_session" on "session_subjects" ("tenant_id", "session_id");`,
    );

    this.addSql(
      `alter table "grants" add "server" varchar(255) not null default 'built-in', add "document" text null, add "holder" text null, add "generation" int not null default 0, add "revoked_at" bigint null;`,
    );
  }

  override down(): void | Promise<void> {
    this.addSql(`drop table if exists "authorizations" cascade;`);
    this.addSql(`drop table if exists "deferred_transactions" cascade;`);
    this.addSql(`drop table if exists "session_subjects" cascade;`);

    this.addSql(
      `alter table "grants" drop column "server", drop column "document", drop column "holder", drop column "generation", drop column "revoked_at";`,
    );
  }
}
