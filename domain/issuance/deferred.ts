import { Failure } from '../shared/failure.ts';
import type { PublicId, SessionId } from '../shared/ids.ts';
import type { PublicJwk } from '../shared/jwk.ts';
import type { WalletStatus } from '../status-lists/wallet-status.ts';

export const DEFERRED_STATUSES = ['pending', 'ready', 'retrieved', 'failed', 'expired'] as const;
export type DeferredStatus = (typeof DEFERRED_STATUSES)[number];

/** Polling interval for wallets, unless the backend sets another one. */
export const DEFAULT_INTERVAL_SECONDS = 5;
/** A pending transaction expires after this time. */
export const DEFERRED_LIFETIME_SECONDS = 86_400;

/** Credentials that a backend promised for later (OpenID4VCI 1.0 section 9). */
export type DeferredTransaction = {
  /** The `transaction_id`. */
  readonly id: string;
  readonly sessionId: SessionId;
  readonly publicId: PublicId;
  /** The grant whose tokens may fetch it; null for a token of an external authorization server. */
  readonly grantId: string | null;
  readonly credentialConfigurationId: string;
  /** Proven keys of the wallet, one per credential; empty without key binding, and after the transaction ended. */
  readonly holderKeys: readonly PublicJwk[];
  readonly status: DeferredStatus;
  readonly intervalSeconds: number;
  /** Sealed at rest; null unless `ready`. */
  readonly credentials: readonly string[] | null;
  /** The batch to be retrieved, whose id is the notification id; null until `ready`. */
  readonly batchId: string | null;
  readonly errorMessage: string | null;
  /**
   * Status references of the wallet's attestations, which its credentials follow; sealed at rest, null for credentials that follow none.
   */
  readonly walletStatuses: readonly WalletStatus[] | null;
  /** Time of the wallet's authorization; null in transactions of earlier releases. */
  readonly authorizedAt: Date | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly expiresAt: Date;
};

/** The status at a given time: a transaction past its end is expired even before the maintenance job updates the row. */
export function deferredStatusAt({ status, expiresAt }: Pick<DeferredTransaction, 'status' | 'expiresAt'>, now: Date): DeferredStatus {
  return (status === 'pending' || status === 'ready') && expiresAt <= now ? 'expired' : status;
}

/** @throws Failure `conflict` unless the transaction is pending. */
export function assertPending(transaction: DeferredTransaction, now: Date): void {
  const status = deferredStatusAt(transaction, now);
  if (status !== 'pending') throw new Failure('conflict', `the transaction is ${status}`);
}

/** Transitions of a deferred transaction; the clock expires it while it is pending or ready. */
export const DEFERRED_MOVES = {
  complete: { from: ['pending'], to: 'ready' },
  fail: { from: ['pending'], to: 'failed' },
  retrieve: { from: ['ready'], to: 'retrieved' },
  /** Its session ended or was revoked before the wallet retrieved the credentials. */
  refuse: { from: ['ready'], to: 'failed' },
  expire: { from: ['pending', 'ready'], to: 'expired' },
} as const satisfies Record<string, { readonly from: readonly DeferredStatus[]; readonly to: DeferredStatus }>;

/** Final statuses. Wallet keys are erased then, because they have no further use (OpenID4VCI 1.0 section 15.4.1). */
export const DEFERRED_ENDS: readonly DeferredStatus[] = [DEFERRED_MOVES.retrieve.to, DEFERRED_MOVES.fail.to, DEFERRED_MOVES.expire.to];

export type DeferredChange = { readonly id: string } & (
  | { readonly act: 'complete'; readonly credentials: readonly string[]; readonly batchId: string }
  | { readonly act: 'fail'; readonly errorMessage: string }
  /** The credentials are returned once, and erased in the same transaction. */
  | { readonly act: 'retrieve' }
  | { readonly act: 'refuse'; readonly errorMessage: string }
);
