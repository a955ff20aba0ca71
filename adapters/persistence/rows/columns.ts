import type { Cipher } from '../../../application/ports/cipher.ts';
import type { Field, Row } from '../statement.ts';
import { decodeDocument, encodeDocument } from './document-codec.ts';

/** Fields of one row in the order of its columns, without the tenant, which always comes first. */
export type Fields = readonly Field[];

/** Where a value is stored: what is sealed for one place does not open at another. */
type Place = { readonly cipher: Cipher; readonly table: string; readonly tenantId: string; readonly id: string };

/** How a member is written to its column, and read from what the driver of either database makes of it. */
type Column<T> = {
  /** Unless it is that of the member in snake case. */
  readonly name?: string;
  write(value: T, place: Place, column: string): Field;
  read(stored: unknown, place: Place, column: string): T;
};

type ColumnsOf<T, Members extends keyof T> = { readonly [Member in Members]: Column<T[Member]> };

export const number: Column<number> = { write: (value) => value, read: Number };
export const flag: Column<boolean> = { write: (value) => value, read: Boolean };
export const time: Column<Date> = { write: (value) => value.getTime(), read: (stored) => new Date(Number(stored)) };
export const text = <T extends string>(): Column<T> => ({ write: (value) => value, read: (stored) => stored as T });
export const json = <T>(): Column<T> => ({ write: (value) => JSON.stringify(value), read: (stored) => JSON.parse(stored as string) as T });
/** JSON that may hold times. */
export const document = <T>(): Column<T> => ({ write: encodeDocument, read: (stored) => decodeDocument<T>(stored as string) });

export const named = <T>(name: string, column: Column<T>): Column<T> => ({ ...column, name });

export const optional = <T>({ write, read, ...rest }: Column<T>): Column<T | null> => ({
  ...rest,
  write: (value, ...at) => (value === null ? null : write(value, ...at)),
  read: (stored, ...at) => (stored === null || stored === undefined ? null : read(stored, ...at)),
});

export const sealed = <T>({ write, read, ...rest }: Column<T>): Column<T> => ({
  ...rest,
  write: (value, place, column) => place.cipher.seal(String(write(value, place, column)), contextOf(place, column)),
  read: (stored, place, column) => read(place.cipher.open(stored as string, contextOf(place, column)).toString('utf8'), place, column),
});

export const sealedBytes: Column<Buffer> = {
  write: (value, place, column) => place.cipher.seal(value, contextOf(place, column)),
  read: (stored, place, column) => place.cipher.open(stored as string, contextOf(place, column)),
};

function contextOf({ table, tenantId, id }: Place, column: string): string {
  return `${table}/${column}/${tenantId}/${id}`;
}

export function snakeCase(member: string): string {
  return member.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/**
 * A table whose rows are values of the domain, each of its members named once.
 * @param first the members that a new row has, in the order of the composite type that carries them.
 * @param later the others, which only changes write.
 */
export function table<T extends { readonly id: string }, First extends keyof T>(
  name: string,
  first: ColumnsOf<T, First>,
  later: ColumnsOf<T, Exclude<keyof T, First>>,
) {
  type Named = Column<T[keyof T]> & { readonly member: keyof T; readonly column: string };
  const listed = (columns: object): readonly Named[] =>
    Object.entries(columns as Record<string, Column<T[keyof T]>>).map(([member, how]) => ({
      ...how,
      member: member as keyof T,
      column: how.name ?? snakeCase(member),
    }));
  const written = listed(first);
  const all = [...written, ...listed(later)];
  const byMember = new Map(all.map((named) => [named.member, named]));
  return {
    name,
    /** Of a new row. */
    columns: written.map(({ column }) => column),
    /** A new row. */
    write(cipher: Cipher, tenantId: string, value: Pick<T, First | (keyof T & 'id')>): Fields {
      const place = { cipher, table: name, tenantId, id: value.id };
      return written.map((named) => named.write((value as T)[named.member], place, named.column));
    },
    /** One field of a row. */
    field<Member extends keyof T>(member: Member, value: T[Member], place: Omit<Place, 'table'>): Field {
      const { write, column } = byMember.get(member) as Named;
      return write(value, { ...place, table: name }, column);
    },
    /** One field of a row, from what the driver made of it. */
    readField<Member extends keyof T>(member: Member, stored: unknown, place: Omit<Place, 'table'>): T[Member] {
      const { read, column } = byMember.get(member) as Named;
      return read(stored, { ...place, table: name }, column) as T[Member];
    },
    read(cipher: Cipher, row: Row): T {
      const place = { cipher, table: name, tenantId: row['tenant_id'] as string, id: row['id'] as string };
      const value: Partial<T> = {};
      for (const { member, column, read } of all) value[member] = read(row[column], place, column);
      return value as T;
    },
  };
}
