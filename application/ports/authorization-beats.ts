import type { TenantActor } from '../../domain/audit/audit-entry.ts';
import type { DeferredTransaction } from '../../domain/issuance/deferred.ts';
import type { Authorization } from '../../domain/oauth/authorization.ts';
import type { Grant, Redeemer } from '../../domain/oauth/grant.ts';
import type { Session } from '../../domain/sessions/session.ts';
import type { PublicId, SessionId } from '../../domain/shared/ids.ts';
import type { IssuedBatch } from '../../domain/status-lists/status-list.ts';
import type { NewGrant, TenantHead, UsedValue } from './store.ts';

/** Who redeems a grant, and until when the tokens that it brings may live. */
export type Redemption = { readonly holder: Redeemer; readonly until: Date };

/** The steps from an authorization request to a code, and those of a grant after its redemption. */
export type AuthorizationBeats = {
  /**
   * Writes a new authorization and remembers `used`.
   * @returns the kind of a value that was known already, or undefined when the tenant is gone or suspended; nothing
   *   has happened in either case.
   */
  openAuthorization(
    authorization: Authorization,
    used: readonly UsedValue[],
  ): Promise<'opened' | UsedValue['kind'] | undefined>;
  /** @returns head and authorization in one read. */
  findAuthorization(
    id: string,
  ): Promise<{ head: TenantHead; authorization: Authorization | undefined } | undefined>;
  /**
   * Stores the next step of an authorization and remembers `used`.
   * @returns `stale` when another step was first, or the kind of a value that was known already; nothing has happened
   *   in either case.
   */
  advanceAuthorization(
    next: Authorization,
    used: readonly UsedValue[],
  ): Promise<'advanced' | 'stale' | UsedValue['kind']>;
  /**
   * Ends an authorization with a code, and opens the session that comes with it when there is none yet.
   * @returns false, with nothing changed, when another step was first or the session is gone.
   */
  grantAuthorization(
    done: Authorization,
    grant: NewGrant,
    session?: Session,
    used?: readonly UsedValue[],
  ): Promise<boolean>;

  /** @returns head and grant in one read. */
  findGrantById(id: string): Promise<{ head: TenantHead; grant: Grant | undefined } | undefined>;
  /**
   * Counts a refresh token as used, and remembers `used`.
   * @param generation what the grant must have come to.
   * @returns `stale` when it has moved on or counts no more.
   */
  refreshGrant(
    id: string,
    generation: number,
    used: readonly UsedValue[],
    now: Date,
  ): Promise<'refreshed' | 'stale' | UsedValue['kind']>;
  /** From then on no token of the grant counts. */
  revokeGrant(id: string, now: Date): Promise<void>;

  /** Notes that a user of a foreign authorization server has this session. The hash says nothing of the user. */
  linkSubject(subjectHash: string, sessionId: SessionId): Promise<void>;
  /** Sessions of such a user, the newest first, at most 20. */
  findBySubject(subjectHash: string): Promise<Session[]>;
};

export type DeferredQuery = {
  readonly sessionId?: SessionId;
  readonly limit: number;
};

/** The steps of a deferred transaction. */
export type DeferredBeats = {
  /**
   * Writes a transaction; its session lives at least as long.
   * @param bit of the configuration; a session that may issue no more of it opens nothing.
   * @returns false, with nothing written, when the session is over, barred, or has too many transactions.
   */
  openDeferred(transaction: DeferredTransaction, bit: number): Promise<boolean>;
  findDeferred(id: string): Promise<DeferredTransaction | undefined>;
  /** The newest first. */
  listDeferred(query: DeferredQuery): Promise<DeferredTransaction[]>;
  /**
   * `pending` becomes `ready` with these credentials, and the batch is on record.
   * @returns false, with nothing changed, when the transaction is not pending any more or its session is over.
   */
  completeDeferred(
    id: string,
    credentials: readonly string[],
    batch: IssuedBatch,
    bit: number,
    now: Date,
    by: TenantActor,
  ): Promise<boolean>;
  /**
   * `pending` becomes `failed`.
   * @param by null when it is a wallet that finds it so, which is nobody's decision and not in the audit log.
   * @returns false when it is not pending any more.
   */
  failDeferred(id: string, errorMessage: string, now: Date, by: TenantActor | null): Promise<boolean>;
  /**
   * Hands the credentials out: `ready` becomes `retrieved`, once, and the session's bit is set, which may complete it.
   * @param bit of the configuration. When the session is over or was revoked for it, `ready` becomes `failed` instead,
   *   with the credentials erased and `reason` for the operator.
   * @returns the transaction as it was before, `refused` in that case, or undefined when there is nothing to hand out.
   */
  retrieveDeferred(
    id: string,
    publicId: PublicId,
    bit: number,
    completeMask: number,
    reason: string,
    now: Date,
  ): Promise<{ transaction: DeferredTransaction; completed: boolean } | 'refused' | undefined>;
};
