import type { SessionId } from '../shared/ids.ts';
import type { effectiveStatusListConfig } from '../tenants/tenant.ts';
import { roundCapacity } from './bits.ts';

/** A status list as it is stored: a counter, a secret that scatters it, and the token made last. */
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
  /** Counters that processes took so far, in runs; burnt ones included. */
  readonly usedEntries: number;
  /** Raised by every status change. */
  readonly version: number;
  readonly createdAt: Date;
  /** Null where none was made, and where the next change would replace it anyway. */
  readonly token: StatusToken | null;
  /** End of the token made last; null before the first. */
  readonly tokenExpiresAt: Date | null;
};

/** A list of which no entry was handed out. Its capacity is `shape.capacity`, rounded up to what can be scattered. */
export function newStatusList(
  shape: ReturnType<typeof effectiveStatusListConfig>,
  given: Pick<StatusList, 'id' | 'credentialConfigurationId' | 'keyChainId' | 'secret' | 'createdAt'>,
): StatusList {
  const { bits, capacity, ttl, immediateUpdate, enableAggregation } = shape;
  const start = { usedEntries: 0, version: 1, token: null, tokenExpiresAt: null } as const;
  const rounded = roundCapacity(bits, capacity);
  return { ...given, ...start, bits, capacity: rounded, ttlSeconds: ttl, immediateUpdate, enableAggregation };
}

export type StatusToken = {
  readonly jwt: string;
  /** The list's version that the token shows. */
  readonly version: number;
  readonly issuedAt: Date;
  readonly expiresAt: Date;
};

/** What one credential request issued: one row per batch, its status indices as a run of a counter. */
export type IssuedBatch = {
  readonly id: string;
  readonly sessionId: SessionId;
  readonly credentialConfigurationId: string;
  readonly count: number;
  readonly statusListId: string | null;
  readonly firstCounter: number | null;
  readonly issuedAt: Date;
};

/** Another status of one entry. */
export type StatusChange = { readonly listId: string; readonly index: number; readonly status: number };
