import { Migration } from '@mikro-orm/migrations';

export class Migration00000000000006_removed_clients extends Migration {
  override name = 'Migration00000000000006_removed_clients';

  override up(): void | Promise<void> {
    this.addSql(
      `create table "removed_clients" ("tenant_id" varchar(255) not null, "client_id" varchar(255) not null, primary key ("tenant_id", "client_id"));`,
    );
    // Who was removed before there were marks stands in the audit log.
    this.addSql(
      `insert into removed_clients (tenant_id, client_id)
       select distinct entry.tenant_id, entry.target from audit_entries entry
       join tenants on tenants.id = entry.tenant_id
       where entry.kind = 'client' and entry.action = 'removed'
       and not exists (select 1 from clients
         where clients.client_id = entry.target and clients.tenant_id = entry.tenant_id);`,
    );
  }

  override down(): void | Promise<void> {
    this.addSql(`drop table if exists "removed_clients" cascade;`);
  }
}
