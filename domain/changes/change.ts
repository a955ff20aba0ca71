import type { AuditChange, TenantActor } from '../audit/audit-entry.ts';
import type { DeferredChange, DeferredTransaction } from '../issuance/deferred.ts';
import type { IdentifiedBatch, ReleasedBatches } from '../issuance/subject-claims.ts';
import type { Authorization } from '../oauth/authorization.ts';
import type { GrantChange, NewGrant } from '../oauth/grant.ts';
import type { UsedValue } from '../oauth/used-value.ts';
import type { KeptAnswer } from '../sessions/kept-answer.ts';
import type { Session } from '../sessions/session.ts';
import type { SessionChange } from '../sessions/session-change.ts';
import type { SessionId } from '../shared/ids.ts';
import type { IssuedBatch, StatusChange } from '../status-lists/status-list.ts';
import type { FollowingBatch, WalletStatus } from '../status-lists/wallet-status.ts';
import type { Revisions } from '../tenants/revisions.ts';

/**
 * Everything that one step can do, as data: what it expects to find, and what is to become of it. All parts happen, or
 * none. The store applies a change and decides nothing.
 */
export type Change = {
  /** The tenant serves wallets and clients at present. It has to exist in any case. */
  readonly serving?: true;
  /** The tenant is configured as the decision assumed. */
  readonly revisions?: Revisions;
  /** Values that count once. One that is known already undoes the whole change. */
  readonly uses?: readonly UsedValue[];
  /** The grant of an access token, which must not have been revoked; one that is gone was not. */
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
  /** Said to a client, who asked for it under a key; one that is known and not over undoes the whole change. */
  readonly keeps?: KeptAnswer;
  readonly issued?: IssuedBatch;
  /** What `issued` follows from now on. */
  readonly follows?: FollowingBatch;
  /** The person that `issued` is about, whose credentials must not have been revoked since the wallet was authorized. */
  readonly identifies?: IdentifiedBatch;
  /** What was issued to a person and is revoked now: nobody else has revoked any of it for that. */
  readonly releases?: ReleasedBatches;
  /** What the credentials of a deferred transaction are going to follow; nothing any more once they are made. */
  readonly holds?: { readonly transactionId: string; readonly statuses: readonly WalletStatus[] };
  /** Of entries that were not revoked, unless they are revoked again. */
  readonly statuses?: readonly StatusChange[];
  /**
   * The session is found by this: the user of a foreign authorization server who has it, or the reference of whoever
   * opened it. The hash says nothing of the user.
   */
  readonly subject?: { readonly hash: string; readonly sessionId: SessionId };
  readonly removes?: SessionId;
  /** Stands in the tenant's audit log. */
  readonly audit?: { readonly by: TenantActor; readonly change: AuditChange };
};

/** A part of a change that did not find what it expected. */
export type Part =
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

export type Committed =
  | {
      readonly done: true;
      /** Of the session that was changed. */
      readonly session?: {
        readonly status: Session['status'];
        readonly version: number;
        /** Whether it has another status than before. */
        readonly moved: boolean;
      };
    }
  | { readonly done: false; readonly part: Exclude<Part, 'uses'> }
  | { readonly done: false; readonly part: 'uses'; readonly kind: UsedValue['kind'] };

/** Whether a change of statuses gives nothing away: it may be made also while it is not known what was given away before. */
export function onlyTakesBack(change: Change): boolean {
  const { statuses, uses, grant, authorization, deferred, opens, keeps, issued } = change;
  const given = [uses, grant, authorization, deferred, opens, keeps, issued];
  return statuses !== undefined && given.every((part) => part === undefined);
}
