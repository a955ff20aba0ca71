import { Migration } from '@mikro-orm/migrations';

export class Migration00000000000004_audit extends Migration {
  override name = 'Migration00000000000004_audit';

  override up(): void | Promise<void> {
    this.addSql(
      `create table "audit_entries" ("tenant_id" varchar(255) not null, "sequence" bigint not null, "at" bigint not null, "actor" text not null, "action" varchar(255) not null, "kind" varchar(255) not null, "target" text not null, "detail" text not null, "hash" varchar(255) not null, primary key ("tenant_id", "sequence"));`,
    );
    this.addSql(
      `create index "audit_entries_of_target" on "audit_entries" ("tenant_id", "target", "sequence");`,
    );

    this.addSql(
      `create table "audit_heads" ("tenant_id" varchar(255) not null, "sequence" bigint not null, "hash" varchar(255) not null, "seal" varchar(255) not null, primary key ("tenant_id"));`,
    );
  }

  override down(): void | Promise<void> {
    this.addSql(`drop table if exists "audit_entries" cascade;`);
    this.addSql(`drop table if exists "audit_heads" cascade;`);
  }
}
