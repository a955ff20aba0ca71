/**
 * Statements that allow a PostgreSQL user who owns nothing to run the service: it may read and write rows, but not create or change tables.
 * The list of migrations is read-only for it.
 * @param user name of the user, unquoted.
 * @param migrationsTable table with the names of the migrations that have run.
 */
export function serviceGrants(user: string, migrationsTable: string): readonly string[] {
  const name = `"${user.replaceAll('"', '""')}"`;
  const onSchema = (what: string) =>
    `do $$ begin execute format('${what}', current_schema(), '${name.replaceAll("'", "''").replaceAll('%', '%%')}'); end $$`;
  return [
    onSchema('grant usage on schema %I to %s'),
    onSchema('grant select, insert, update, delete on all tables in schema %I to %s'),
    onSchema('grant usage, select, update on all sequences in schema %I to %s'),
    onSchema('grant execute on all functions in schema %I to %s'),
    `revoke insert, update, delete on ${migrationsTable} from ${name}`,
  ];
}
