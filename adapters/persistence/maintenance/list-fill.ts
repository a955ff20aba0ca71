import type { Maintenance } from '../../../application/ports/maintenance.ts';
import { named } from '../statement.ts';
import type { JobSql } from './job-sql.ts';

const LIST_FILL = named(
  'list_fill',
  `select count(*) as lists, coalesce(sum(used_entries), 0) as used, coalesce(sum(capacity), 0) as capacity
   from status_lists`,
);

export function listFill(sql: JobSql): Pick<Maintenance, 'listFill'> {
  return {
    async listFill() {
      const [row] = await sql.all(LIST_FILL);
      const number = (name: string) => Number(row?.[name] ?? 0);
      return { lists: number('lists'), used: number('used'), capacity: number('capacity') };
    },
  };
}
