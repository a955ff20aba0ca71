import { defineEntity, p } from '@mikro-orm/core';

/** Times are milliseconds since the epoch in every table, alike in both dialects. */
export const time = () => p.bigint('number');

/**
 * Filters the rows of every tenant by default. MikroORM throws if `tenantId` was not set on the entity manager, so a query that forgets its
 * tenant does not run.
 */
export const tenantFilter = {
  tenant: { name: 'tenant', cond: (args: { tenantId: string }) => ({ tenantId: args.tenantId }), default: true },
};

/** Index of a table over these properties, in this order. */
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
/** Block range index: small, for values that grow with the rows. SQLite has a B-tree in its place. */
export const blockRange = indexOf('brin');

/** Table whose rows belong to tenants: the primary key starts with `tenantId`, and `tenantFilter` applies. */
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
