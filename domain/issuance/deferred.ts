import { Failure } from '../shared/failure.ts';
import type { PublicId, SessionId } from '../shared/ids.ts';
import type { PublicJwk } from '../shared/jwk.ts';
import type { WalletStatus } from '../status-lists/wallet-status.ts';

export const DEFERRED_STATUSES = ['pending', 'ready', 'retrieved', 'failed', 'expired'] as const;
export type DeferredStatus = (typeof DEFERRED_STATUSES)[number];

/** Seconds that a wallet is asked to wait between two polls, unless the backend says otherwise. */
export const DEFAULT_INTERVAL_SECONDS = 5;
/** Seconds after which a transaction that nobody finished is over. */
export const DEFERRED_LIFETIME_SECONDS = 86_400;

/** Credentials that a backend promised for later (OpenID4VCI 1.0 section 9). */
export type DeferredTransaction = {
  /** The `transaction_id`. */
  readonly id: string;
  readonly sessionId: SessionId;
  readonly publicId: PublicId;
  /** The grant whose tokens may fetch it; null for a token of a foreign authorization server. */
  readonly grantId: string | null;
  readonly credentialConfigurationId: string;
  /** Proven keys of the wallet, one credential each; empty where none is bound, and once the transaction is over. */
  readonly holderKeys: readonly PublicJwk[];
  readonly status: DeferredStatus;
  readonly intervalSeconds: number;
  /** Sealed at rest; null unless `ready`. */
  readonly credentials: readonly string[] | null;
  /** The batch that is handed out, whose id the wallet reports on; null until `ready`. */
  readonly batchId: string | null;
  readonly errorMessage: string | null;
  /** Of the wallet's attestations, which its credentials are going to follow; sealed at rest, null where they follow none. */
  readonly walletStatuses: readonly WalletStatus[] | null;
  /** When the wallet was authorized; null in transactions of earlier releases. */
  readonly authorizedAt: Date | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly expiresAt: Date;
};

/** The status that the clock says: a transaction past its end is over even before the job wrote it down. */
export function deferredStatusAt({ status, expiresAt }: Pick<DeferredTransaction, 'status' | 'expiresAt'>, now: Date): DeferredStatus {
  return (status === 'pending' || status === 'ready') && expiresAt <= now ? 'expired' : status;
}

/** @throws Failure `conflict` unless the backend may still decide. */
export function assertPending(transaction: DeferredTransaction, now: Date): void {
  const status = deferredStatusAt(transaction, now);
  if (status !== 'pending') throw new Failure('conflict', `the transaction is ${status}`);
}

/** What can happen to a deferred transaction; the clock ends it while it is pending or ready. */
export const DEFERRED_MOVES = {
  complete: { from: ['pending'], to: 'ready' },
  fail: { from: ['pending'], to: 'failed' },
  retrieve: { from: ['ready'], to: 'retrieved' },
  /** Its session ended or was revoked before the wallet came. */
  refuse: { from: ['ready'], to: 'failed' },
  expire: { from: ['pending', 'ready'], to: 'expired' },
} as const satisfies Record<string, { readonly from: readonly DeferredStatus[]; readonly to: DeferredStatus }>;

/** Where a transaction is over. Keys of the wallet are of no use any more and are erased (OpenID4VCI 1.0 section 15.4.1). */
export const DEFERRED_ENDS: readonly DeferredStatus[] = [DEFERRED_MOVES.retrieve.to, DEFERRED_MOVES.fail.to, DEFERRED_MOVES.expire.to];

/** What one step does to a deferred transaction whose time is not over. */
export type DeferredChange = { readonly id: string } & (
  | { readonly act: 'complete'; readonly credentials: readonly string[]; readonly batchId: string }
  | { readonly act: 'fail'; readonly errorMessage: string }
  /** The credentials are handed out once, and erased with it. */
  | { readonly act: 'retrieve' }
  | { readonly act: 'refuse'; readonly errorMessage: string }
);
