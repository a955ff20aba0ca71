import type { AuditChange, TenantActor } from '../audit/audit-entry.ts';
import type { DeferredChange, DeferredTransaction } from '../issuance/deferred.ts';
import type { IdentifiedBatch, ReleasedBatches } from '../issuance/subject-claims.ts';
import type { Authorization } from '../oauth/authorization.ts';
import type { ConsumedValue } from '../oauth/consumed-value.ts';
import type { GrantChange, NewGrant } from '../oauth/grant.ts';
import type { IdempotentResponse } from '../sessions/idempotent-response.ts';
import type { Session } from '../sessions/session.ts';
import type { SessionChange } from '../sessions/session-change.ts';
import type { SessionId } from '../shared/ids.ts';
import type { IssuedBatch, StatusChange } from '../status-lists/status-list.ts';
import type { FollowingBatch, WalletStatus } from '../status-lists/wallet-status.ts';
import type { Revisions } from '../tenants/revisions.ts';

/**
 * All changes of one step as data: its conditions and its effects. They are applied atomically. The store applies a change and makes no
 * decisions.
 */
export type Change = {
  /** Condition: the tenant is active for wallets and clients. It must exist in any case. */
  readonly serving?: true;
  /** Condition: the configuration has these revisions. */
  readonly revisions?: Revisions;
  /** Single-use values. A value that is stored already aborts the whole change. */
  readonly uses?: readonly ConsumedValue[];
  /** Condition: the grant of an access token is not revoked; a deleted grant counts as not revoked. */
  readonly unrevoked?: string;
  readonly grant?: GrantChange;
  readonly session?: SessionChange;
  readonly authorization?: Authorization;
  readonly deferred?: DeferredChange;
  readonly opens?: {
    readonly session?: Session;
    readonly grant?: NewGrant;
    readonly authorization?: Authorization;
    readonly deferred?: DeferredTransaction;
  };
  /** Idempotent response to a client; an existing unexpired one aborts the whole change. */
  readonly keeps?: IdempotentResponse;
  readonly issued?: IssuedBatch;
  /** Wallet statuses that `issued` follows from now on. */
  readonly follows?: FollowingBatch;
  /** The subject of `issued`, whose credentials must not have been revoked since the wallet was authorized. */
  readonly identifies?: IdentifiedBatch;
  /** Issued credentials of a subject that are revoked; condition: no other revocation released them. */
  readonly releases?: ReleasedBatches;
  /** Wallet statuses that credentials of a deferred transaction will follow; removed once the credentials are issued. */
  readonly holds?: { readonly transactionId: string; readonly statuses: readonly WalletStatus[] };
  /** Status changes of entries that are not revoked yet, unless they are revoked again. */
  readonly statuses?: readonly StatusChange[];
  /**
   * A key for finding the session: the user of an external authorization server, or the backend's reference. The hash reveals nothing about
   * the user.
   */
  readonly subject?: { readonly hash: string; readonly sessionId: SessionId };
  readonly removes?: SessionId;
  /** Entry for the tenant's audit log. */
  readonly audit?: { readonly by: TenantActor; readonly change: AuditChange };
};

/** A part of a change whose condition failed. */
export type ChangePart =
  | 'tenant'
  | 'uses'
  | 'unrevoked'
  | 'grant'
  | 'session'
  | 'authorization'
  | 'deferred'
  | 'statuses'
  | 'removes'
  | 'keeps'
  | 'releases'
  | 'identifies';

export type CommitResult =
  | {
      readonly done: true;
      readonly session?: {
        readonly status: Session['status'];
        readonly version: number;
        /** True if its status changed. */
        readonly moved: boolean;
      };
    }
  | { readonly done: false; readonly part: Exclude<ChangePart, 'uses'> }
  | { readonly done: false; readonly part: 'uses'; readonly kind: ConsumedValue['kind'] };

/** True if a change only revokes or suspends, so that it is permitted while the database may lack consumed values. */
export function onlyRevokes(change: Change): boolean {
  const { statuses, uses, grant, authorization, deferred, opens, keeps, issued } = change;
  const effects = [uses, grant, authorization, deferred, opens, keeps, issued];
  return statuses !== undefined && effects.every((part) => part === undefined);
}
