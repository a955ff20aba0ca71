/** Rows by scope (a tenant, or `EVERYWHERE`) and id. What goes in and what comes out are copies. */
export class Table<Row> {
  #scopes = new Map<string, Map<string, Row>>();

  find(scope: string, id: string): Row | undefined {
    const row = this.#scopes.get(scope)?.get(id);
    return row === undefined ? undefined : copyOf(row);
  }

  has(scope: string, id: string): boolean {
    return this.#scopes.get(scope)?.has(id) ?? false;
  }

  /** Rows of a scope that `wanted` accepts, in the order in which they were first put. */
  list(scope: string, wanted: (row: Row) => boolean = () => true): Row[] {
    return [...(this.#scopes.get(scope)?.values() ?? [])].filter(wanted).map(copyOf);
  }

  /** Rows of all scopes with their place. */
  everywhere(wanted: (row: Row) => boolean): { scope: string; id: string; row: Row }[] {
    return [...this.#scopes].flatMap(([scope, rows]) =>
      [...rows].flatMap(([id, row]) => (wanted(row) ? [{ scope, id, row: copyOf(row) }] : [])),
    );
  }

  put(scope: string, id: string, row: Row): void {
    const rows = this.#scopes.get(scope) ?? new Map<string, Row>();
    rows.set(id, copyOf(row));
    this.#scopes.set(scope, rows);
  }

  remove(scope: string, id: string): boolean {
    return this.#scopes.get(scope)?.delete(id) ?? false;
  }

  removeScope(scope: string): void {
    this.#scopes.delete(scope);
  }

  /** @returns what brings the table back to how it is now. Rows are never changed in place. */
  mark(): () => void {
    const before = new Map([...this.#scopes].map(([scope, rows]) => [scope, new Map(rows)]));
    return () => {
      this.#scopes = before;
    };
  }
}

/** Scope of rows that are unique over all tenants. */
export const EVERYWHERE = '';

/** Copies as a database would: plain values, dates and bytes; members that are undefined do not come back. */
export function copyOf<T>(value: T): T {
  return copyUnknown(value) as T;
}

function copyUnknown(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Date) return new Date(value);
  if (Buffer.isBuffer(value)) return Buffer.from(value);
  if (Array.isArray(value)) return value.map((item) => copyUnknown(item) ?? null);
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, member]) =>
      member === undefined ? [] : [[name, copyUnknown(member)]],
    ),
  );
}
