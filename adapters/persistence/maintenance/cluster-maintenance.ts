import type { Cipher } from '../../../application/ports/cipher.ts';
import type { Maintenance } from '../../../application/ports/maintenance.ts';
import type { ClientMacs } from '../client-macs.ts';
import type { PostgresSql } from '../postgres/sql.ts';
import { postgresExpiry } from './expiry.ts';
import { postgresMaintenance } from './maintenance.ts';

/**
 * Jobs on a cluster that has each tenant on one of its machines: what finds rows asks all machines at once, what changes them is
 * of one tenant.
 */
export function clusterMaintenance(sql: PostgresSql, cipher: Cipher, clientMacs: ClientMacs): Maintenance {
  return {
    ...postgresMaintenance(sql, cipher, clientMacs),
    ...postgresExpiry(sql, true),
    // Its machines look after the parts that they have.
    refreshStatistics: async () => ({ refreshed: [], failures: [] }),
  };
}
