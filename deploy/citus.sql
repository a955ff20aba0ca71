-- Spreads the tables of a PostgreSQL with Citus over its nodes, by tenant; see docs/reference/scale.md.
-- Run once on the coordinator, when the service has made its tables and none of its processes runs:
--   psql --set ON_ERROR_STOP=1 --file deploy/citus.sql <database>
-- Run again after an upgrade it spreads what is new, and leaves the rest as it is.

-- The triggers write to nothing but the row that fires them; and a call that is sent to the machine of its tenant changes rows of that
-- tenant alone, which are all there.
select run_command_on_all_nodes(format('alter database %I set citus.enable_unsafe_triggers = on', current_database()));
select run_command_on_all_nodes(
  format('alter database %I set citus.allow_nested_distributed_execution = on', current_database()));
set citus.enable_unsafe_triggers = on;

-- What belongs to no tenant, and clients, who are found by their own ids.
select create_reference_table(c.oid::regclass)
from pg_class c
where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r'
  and c.relname not in ('tenants', 'schema_migrations')
  and (c.relname = 'clients'
    or not exists (select 1 from pg_attribute a where a.attrelid = c.oid and a.attname = 'tenant_id'))
  and not exists (select 1 from pg_dist_partition p where p.logicalrelid = c.oid);

select create_distributed_table('tenants', 'id')
where not exists (select 1 from pg_dist_partition p where p.logicalrelid = 'tenants'::regclass);

select create_distributed_table(c.oid::regclass, 'tenant_id', colocate_with => 'tenants')
from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r'
  and not exists (select 1 from pg_dist_partition p where p.logicalrelid = c.oid);

select create_distributed_function(f.oid::regprocedure, 'p_tenant', colocate_with => 'tenants')
from pg_proc f
where f.pronamespace = current_schema()::regnamespace and 'p_tenant' = any(f.proargnames);
