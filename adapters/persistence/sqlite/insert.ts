import { named } from '../statement.ts';

/** Makes a row of a table, whose tenant comes first. */
export const insert = (table: string, columns: readonly string[], otherwise = '') => {
  const places = Array.from({ length: columns.length + 1 }, (_, index) => `$${index + 1}`);
  return named(
    `new_${table}`,
    `insert into ${table} (tenant_id, ${columns.join(', ')}) values (${places.join(', ')}) ${otherwise}`,
  );
};
