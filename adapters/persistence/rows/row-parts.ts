import { p } from '@mikro-orm/core';

/** Times are milliseconds since the epoch in every table, alike in both dialects. */
export const time = () => p.bigint('number');

/**
 * On by default for every row of a tenant. MikroORM throws when `tenantId` was not set on the entity manager,
 * so a query that forgets its tenant does not run.
 */
export const tenantFilter = {
  tenant: {
    name: 'tenant',
    cond: (args: { tenantId: string }) => ({ tenantId: args.tenantId }),
    default: true,
  },
};
