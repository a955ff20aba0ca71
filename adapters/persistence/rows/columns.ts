import type { Cipher } from '../../../application/ports/cipher.ts';
import type { Field, Row } from '../statement.ts';
import { decodeDocument, encodeDocument } from './document-codec.ts';

/** Fields of one row in the order of its columns, without the tenant, which always comes first. */
export type Fields = readonly Field[];

/** Location of a value: a text that is sealed for one location does not open at another. */
type Location = { readonly cipher: Cipher; readonly table: string; readonly tenantId: string; readonly id: string };

/** Writes a property to its column, and reads it from what either driver returns. */
type Column<T> = {
  /** Name of the column; by default the property in snake case. */
  readonly name?: string;
  write(value: T, location: Location, column: string): Field;
  read(storedValue: unknown, location: Location, column: string): T;
};

type ColumnsOf<T, Members extends keyof T> = { readonly [Member in Members]: Column<T[Member]> };

export const number: Column<number> = { write: (value) => value, read: Number };
export const flag: Column<boolean> = { write: (value) => value, read: Boolean };
export const time: Column<Date> = { write: (value) => value.getTime(), read: (storedValue) => new Date(Number(storedValue)) };
export const text = <T extends string>(): Column<T> => ({ write: (value) => value, read: (storedValue) => storedValue as T });
export const json = <T>(): Column<T> => ({
  write: (value) => JSON.stringify(value),
  read: (storedValue) => JSON.parse(storedValue as string) as T,
});
/** JSON that may contain dates. */
export const document = <T>(): Column<T> => ({ write: encodeDocument, read: (storedValue) => decodeDocument<T>(storedValue as string) });

export const namedColumn = <T>(name: string, column: Column<T>): Column<T> => ({ ...column, name });

export const optional = <T>({ write, read, ...options }: Column<T>): Column<T | null> => ({
  ...options,
  write: (value, ...context) => (value === null ? null : write(value, ...context)),
  read: (storedValue, ...context) => (storedValue === null || storedValue === undefined ? null : read(storedValue, ...context)),
});

export const sealed = <T>({ write, read, ...options }: Column<T>): Column<T> => ({
  ...options,
  write: (value, location, column) => location.cipher.seal(String(write(value, location, column)), contextOf(location, column)),
  read: (storedValue, location, column) =>
    read(location.cipher.open(storedValue as string, contextOf(location, column)).toString('utf8'), location, column),
});

export const sealedBytes: Column<Buffer> = {
  write: (value, location, column) => location.cipher.seal(value, contextOf(location, column)),
  read: (storedValue, location, column) => location.cipher.open(storedValue as string, contextOf(location, column)),
};

function contextOf({ table, tenantId, id }: Location, column: string): string {
  return `${table}/${column}/${tenantId}/${id}`;
}

export function snakeCase(property: string): string {
  return property.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/**
 * Table whose rows are values of the domain, with each property listed once.
 * @param initial the properties of a new row, in the order of the composite type that carries them.
 * @param later the other properties, which only changes write.
 */
export function table<T extends { readonly id: string }, First extends keyof T>(
  name: string,
  initial: ColumnsOf<T, First>,
  later: ColumnsOf<T, Exclude<keyof T, First>>,
) {
  type NamedColumn = Column<T[keyof T]> & { readonly member: keyof T; readonly column: string };
  const toColumns = (columns: object): readonly NamedColumn[] =>
    Object.entries(columns as Record<string, Column<T[keyof T]>>).map(([member, how]) => ({
      ...how,
      member: member as keyof T,
      column: how.name ?? snakeCase(member),
    }));
  const initialColumns = toColumns(initial);
  const allColumns = [...initialColumns, ...toColumns(later)];
  const byProperty = new Map(allColumns.map((entry) => [entry.member, entry]));
  return {
    name,
    columns: initialColumns.map(({ column }) => column),
    write(cipher: Cipher, tenantId: string, value: Pick<T, First | (keyof T & 'id')>): Fields {
      const location = { cipher, table: name, tenantId, id: value.id };
      return initialColumns.map((entry) => entry.write((value as T)[entry.member], location, entry.column));
    },
    field<Member extends keyof T>(property: Member, value: T[Member], location: Omit<Location, 'table'>): Field {
      const { write, column } = byProperty.get(property) as NamedColumn;
      return write(value, { ...location, table: name }, column);
    },
    readField<Member extends keyof T>(property: Member, storedValue: unknown, location: Omit<Location, 'table'>): T[Member] {
      const { read, column } = byProperty.get(property) as NamedColumn;
      return read(storedValue, { ...location, table: name }, column) as T[Member];
    },
    read(cipher: Cipher, row: Row): T {
      const location = { cipher, table: name, tenantId: row['tenant_id'] as string, id: row['id'] as string };
      const value: Partial<T> = {};
      for (const { member, column, read } of allColumns) value[member] = read(row[column], location, column);
      return value as T;
    },
  };
}
