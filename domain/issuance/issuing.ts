import type { UsedValue } from '../oauth/used-value.ts';
import { ISSUING_STATUSES, MAX_ISSUANCES, MOVES, RENEWING_STATUSES, type Session, type SessionUse, statusAt } from '../sessions/session.ts';
import type { SessionChange } from '../sessions/session-change.ts';
import { defined } from '../shared/defined.ts';
import { Failure, OperatorReason } from '../shared/failure.ts';
import type { IssuedBatch } from '../status-lists/status-list.ts';
import type { WalletStatus } from '../status-lists/wallet-status.ts';
import type { DeferredTransaction } from './deferred.ts';
import { renews } from './renewal.ts';

/**
 * What could not be recorded afterwards is refused before anybody is asked for claims or signs; the record decides again.
 * @param grantId of the access token, if it is one of ours.
 * @param use what the session has used up, where that was read with it.
 * @returns the session, which may have completed.
 * @throws Failure `credential_request_denied` (OpenID4VCI 1.0 section 8.3.1.2) when it is over, does not offer the
 *   configuration, or may issue no more of it.
 */
export function issuable(
  session: Session | undefined,
  configurationId: string,
  now: Date,
  grantId: string | undefined,
  use?: SessionUse,
): Session {
  if (session === undefined) throw offerOver();
  const isRenewed = renews(session, configurationId, grantId);
  if (!isRenewed && !ISSUING_STATUSES.includes(statusAt(session, now))) throw offerOver();
  const { request, configurationIds } = session;
  // What is left of an offer that was removed says of nothing but what may be renewed.
  const isOffered = request === null ? isRenewed : request.kind === 'issuance';
  if (!isOffered || !configurationIds.includes(configurationId)) {
    throw new Failure('credential_request_denied', 'the offer does not cover this credential');
  }
  const { bit } = bitsOf(session, configurationId);
  if (use !== undefined && (use.barred & bit) !== 0) throw offerOver();
  return session;
}

/** Bit i stands for the i-th configuration of the offer; all of them together complete it. */
function bitsOf({ configurationIds }: Pick<Session, 'configurationIds'>, configurationId: string) {
  return { bit: 2 ** configurationIds.indexOf(configurationId), all: 2 ** configurationIds.length - 1 };
}

/** What the session must have issued altogether, so that there is room for one more. */
export type Room = Pick<SessionChange, 'issuedBelow' | 'issuedExactly'>;

type Issuing = Pick<Session, 'id' | 'status' | 'expiresAt' | 'configurationIds' | 'issuedMask'>;

/**
 * What a session must be to issue one more credential of the configuration. In its time the record says that it lasts, so
 * whoever remembers one that was removed meanwhile finds out.
 * @param grantId of the access token.
 */
function mayIssue(session: Issuing, configurationId: string, grantId: string | undefined, room: Room, now: Date): SessionChange {
  const isOver = session.expiresAt <= now && renews(session, configurationId, grantId);
  return {
    ...(isOver ? { anytime: RENEWING_STATUSES } : { running: ISSUING_STATUSES }),
    id: session.id,
    unbarred: bitsOf(session, configurationId).bit,
    ...room,
  };
}

/** The same for what was begun in time: it may end after the session's. */
function mayStillIssue(session: Issuing, configurationId: string, grantId: string | undefined, room: Room): SessionChange {
  return {
    anytime: renews(session, configurationId, grantId) ? RENEWING_STATUSES : ISSUING_STATUSES,
    id: session.id,
    unbarred: bitsOf(session, configurationId).bit,
    ...room,
  };
}

/** What a wallet's request spends, and the grant that it rests on. */
export type Spent = { readonly uses: readonly UsedValue[]; readonly unrevoked?: string };

/** What a wallet's request spends, and whose tokens it rests on; the grant is absent for a foreign token. */
export function spent(uses: readonly UsedValue[], grantId: string | undefined): Spent {
  return { uses, ...(grantId !== undefined && { unrevoked: grantId }) };
}

/**
 * Spends what the request brought, before its backend is asked for the claims. The backend may put things off, so it is
 * not asked while the session has no room for another transaction.
 */
export function claim(session: Session, configurationId: string, spending: Spent, room: Room, now: Date) {
  const may = mayIssue(session, configurationId, spending.unrevoked, room, now);
  const change: SessionChange = { ...may, deferredBelow: MAX_ISSUANCES };
  return { ...spending, session: change };
}

/**
 * The credentials are on record and go out; the session completes when they were the last ones.
 * @param grantId of the access token.
 * @param spending absent when the request was claimed before: then it may end after the session's time, but not after the grant was
 *   revoked.
 */
export function issue(
  session: Session,
  batch: IssuedBatch,
  grantId: string | undefined,
  room: Room,
  spending?: Spent & { readonly now: Date },
) {
  const { credentialConfigurationId: id } = batch;
  const { bit, all } = bitsOf(session, id);
  const change: SessionChange = {
    ...(spending === undefined ? mayStillIssue(session, id, grantId, room) : mayIssue(session, id, grantId, room, spending.now)),
    counts: true,
    sets: { bit, all, last: MOVES.complete },
  };
  const { now: _now, ...spends } = spending ?? { ...spent([], grantId), now: undefined };
  return { ...spends, session: change, issued: batch };
}

/**
 * The backend cannot say yet: the session lives at least as long as the transaction. What its credentials are going to
 * follow waits with it.
 */
export function defer(session: Session, transaction: DeferredTransaction, statuses: readonly WalletStatus[] = []) {
  const { credentialConfigurationId, grantId } = transaction;
  const change: SessionChange = {
    ...mayStillIssue(session, credentialConfigurationId, grantId ?? undefined, {}),
    deferredBelow: MAX_ISSUANCES,
    lastsUntil: transaction.expiresAt,
  };
  const holds = statuses.length === 0 ? undefined : { transactionId: transaction.id, statuses };
  const unrevoked = grantId ?? undefined;
  return { session: change, opens: { deferred: transaction }, ...defined({ holds, unrevoked }) };
}

/** The backend decided: the credentials wait for the wallet, whose grant is not revoked, and are on record. */
export function complete(
  session: Session,
  { id, grantId }: Pick<DeferredTransaction, 'id' | 'grantId'>,
  credentials: readonly string[],
  batch: IssuedBatch,
  room: Room,
) {
  const may = mayStillIssue(session, batch.credentialConfigurationId, grantId ?? undefined, room);
  const change: SessionChange = { ...may, counts: true };
  return {
    deferred: { id, act: 'complete', credentials, batchId: batch.id },
    session: change,
    issued: batch,
    ...(grantId !== null && { unrevoked: grantId }),
  } as const;
}

/** The wallet gets what waited for it; the session completes when it was the last one. */
export function retrieve(session: Session, transaction: DeferredTransaction, spending: Spent) {
  const { credentialConfigurationId: configurationId, grantId } = transaction;
  const { bit, all } = bitsOf(session, configurationId);
  const isRenewed = renews(session, configurationId, grantId ?? undefined);
  const change: SessionChange = {
    id: session.id,
    anytime: isRenewed ? RENEWING_STATUSES : ISSUING_STATUSES,
    unbarred: bit,
    sets: { bit, all, last: MOVES.complete },
  };
  return { ...spending, deferred: { id: transaction.id, act: 'retrieve' }, session: change } as const;
}

/** For a session that issues nothing more. */
/** @param reason for the log, where that is another. */
export function offerOver(reason?: string): Failure {
  const options = reason === undefined ? {} : { cause: new OperatorReason(reason) };
  return new Failure('credential_request_denied', 'the offer is over', options);
}
