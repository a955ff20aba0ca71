import { Migration } from '@mikro-orm/migrations';

export class Migration00000000000003_trust extends Migration {
  override name = 'Migration00000000000003_trust';

  override up(): void | Promise<void> {
    this.addSql(
      `create table "registrar_configurations" ("tenant_id" varchar(255) not null, "id" varchar(255) not null, "body" text not null, "created_at" bigint not null, "updated_at" bigint not null, primary key ("tenant_id", "id"));`,
    );

    this.addSql(
      `create table "registration_certificates" ("tenant_id" varchar(255) not null, "id" varchar(255) not null, "body" text not null, "created_at" bigint not null, "updated_at" bigint not null, primary key ("tenant_id", "id"));`,
    );

    this.addSql(
      `create table "seen_releases" ("tenant_id" varchar(255) not null, "id" varchar(255) not null, "sequence_number" bigint not null, "content_hash" varchar(255) not null, "seen_at" bigint not null, primary key ("tenant_id", "id"));`,
    );

    this.addSql(
      `create table "trust_lists" ("tenant_id" varchar(255) not null, "id" varchar(255) not null, "body" text not null, "sequence_number" int not null, "jwt" text not null, "next_update" bigint not null, "created_at" bigint not null, "updated_at" bigint not null, primary key ("tenant_id", "id"));`,
    );
    this.addSql(`create index "trust_lists_by_end" on "trust_lists" ("next_update");`);

    this.addSql(
      `create table "trust_list_versions" ("tenant_id" varchar(255) not null, "trust_list_id" varchar(255) not null, "sequence_number" int not null, "id" varchar(255) not null, "body" text not null, "created_at" bigint not null, primary key ("tenant_id", "trust_list_id", "sequence_number"));`,
    );
    this.addSql(
      `alter table "trust_list_versions" add constraint "trust_list_versions_id" unique ("tenant_id", "trust_list_id", "id");`,
    );
  }

  override down(): void | Promise<void> {
    this.addSql(`drop table if exists "registrar_configurations" cascade;`);
    this.addSql(`drop table if exists "registration_certificates" cascade;`);
    this.addSql(`drop table if exists "seen_releases" cascade;`);
    this.addSql(`drop table if exists "trust_lists" cascade;`);
    this.addSql(`drop table if exists "trust_list_versions" cascade;`);
  }
}
