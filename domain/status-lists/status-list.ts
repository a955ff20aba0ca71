import type { SessionId } from '../shared/ids.ts';
import type { effectiveStatusListConfig } from '../tenants/tenant.ts';
import { roundCapacity } from './bits.ts';

/** A stored status list: a counter, the secret of its permutation, and the latest token. */
export type StatusList = {
  readonly id: string;
  /** `null`: shared by all credential configurations of the tenant. */
  readonly credentialConfigurationId: string | null;
  /** `null`: signed by the tenant's default status list key chain. */
  readonly keyChainId: string | null;
  readonly bits: 1 | 2 | 4 | 8;
  readonly capacity: number;
  readonly ttlSeconds: number;
  readonly immediateUpdate: boolean;
  readonly enableAggregation: boolean;
  /** Key of the permutation that turns counters into indices, 32 bytes. Sealed at rest. */
  readonly secret: Buffer;
  /** Number of counters that processes have leased, including unused ones. */
  readonly usedEntries: number;
  /** Incremented by every status change. */
  readonly version: number;
  readonly createdAt: Date;
  /** Null if there is none, or the next change would replace it anyway. */
  readonly token: StatusToken | null;
  /** End of the latest token; null before the first one. */
  readonly tokenExpiresAt: Date | null;
};

/** An empty list. Its capacity is `shape.capacity`, rounded up to whole bytes. */
export function newStatusList(
  shape: ReturnType<typeof effectiveStatusListConfig>,
  properties: Pick<StatusList, 'id' | 'credentialConfigurationId' | 'keyChainId' | 'secret' | 'createdAt'>,
): StatusList {
  const { bits, capacity, ttl, immediateUpdate, enableAggregation } = shape;
  const start = { usedEntries: 0, version: 1, token: null, tokenExpiresAt: null } as const;
  const rounded = roundCapacity(bits, capacity);
  return { ...properties, ...start, bits, capacity: rounded, ttlSeconds: ttl, immediateUpdate, enableAggregation };
}

export type StatusToken = { readonly jwt: string; readonly version: number; readonly issuedAt: Date; readonly expiresAt: Date };

/** The credentials of one request: one row per batch, with its status indices as a range of a counter. */
export type IssuedBatch = {
  readonly id: string;
  readonly sessionId: SessionId;
  readonly credentialConfigurationId: string;
  readonly count: number;
  readonly statusListId: string | null;
  readonly firstCounter: number | null;
  readonly issuedAt: Date;
};

export type StatusChange = { readonly listId: string; readonly index: number; readonly status: number };
