import type { Cipher } from '../../../application/ports/cipher.ts';
import type { Maintenance } from '../../../application/ports/maintenance.ts';
import type { ClientMacs } from '../client-macs.ts';
import type { PostgresSql } from '../postgres/sql.ts';
import { postgresExpiry } from './expiry.ts';
import { postgresMaintenance } from './maintenance.ts';

/**
 * Jobs on a cluster that keeps each tenant on one of its machines: statements that find rows query all machines at once, statements that
 * change rows concern one tenant.
 */
export function clusterMaintenance(sql: PostgresSql, cipher: Cipher, clientMacs: ClientMacs): Maintenance {
  return {
    ...postgresMaintenance(sql, cipher, clientMacs),
    ...postgresExpiry(sql, true),
    // The machines of the cluster analyze their own shards.
    refreshStatistics: async () => ({ refreshed: [], failures: [] }),
  };
}
