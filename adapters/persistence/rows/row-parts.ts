import { defineEntity, p } from '@mikro-orm/core';

/** Times are milliseconds since the epoch in every table, alike in both dialects. */
export const time = () => p.bigint('number');

/**
 * On by default for every row of a tenant. MikroORM throws when `tenantId` was not set on the entity manager,
 * so a query that forgets its tenant does not run.
 */
export const tenantFilter = {
  tenant: { name: 'tenant', cond: (args: { tenantId: string }) => ({ tenantId: args.tenantId }), default: true },
};

/** An index of a table, by the properties that it covers in this order. */
type Index<Property extends string> = {
  readonly name: string;
  readonly properties: Property[];
  readonly kind: 'index' | 'unique' | 'brin';
};

const indexOf =
  (kind: Index<string>['kind']) =>
  <const Property extends string>(name: string, ...properties: Property[]): Index<Property> => ({ name, properties, kind });
export const index = indexOf('index');
export const unique = indexOf('unique');
/** A block range index: small, for values that grow with the rows. SQLite has a tree in its place. */
export const blockRange = indexOf('brin');

/** A table whose rows belong to tenants: the primary key starts with `tenantId`, and `tenantFilter` holds. */
export function tenantTable<
  const Name extends string,
  const Table extends string,
  // biome-ignore lint/suspicious/noExplicitAny: the bound that MikroORM has for properties
  const Properties extends Record<string, any>,
>(name: Name, tableName: Table, indexes: readonly Index<NoInfer<keyof Properties & string> | 'tenantId'>[], properties: Properties) {
  const plain = indexes.filter(({ kind }) => kind !== 'unique');
  return defineEntity({
    name,
    tableName,
    properties: { tenantId: p.string().primary(), ...properties },
    uniques: indexes.filter(({ kind }) => kind === 'unique').map(({ name: key, properties: keys }) => ({ name: key, properties: keys })),
    indexes: plain.map(({ name: key, properties: keys, kind }) => ({
      name: key,
      properties: keys,
      ...(kind === 'brin' && { type: kind }),
    })),
    filters: tenantFilter,
  });
}
