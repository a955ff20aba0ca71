import type { SessionId } from '../shared/ids.ts';

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
  /** Counters handed out so far, in runs; burnt ones included. */
  readonly usedEntries: number;
  /** Raised by every status change. */
  readonly version: number;
  readonly createdAt: Date;
  readonly token: StatusToken | null;
};

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
