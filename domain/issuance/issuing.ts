import type { ConsumedValue } from '../oauth/consumed-value.ts';
import { ISSUING_STATUSES, MAX_ISSUANCES, MOVES, RENEWING_STATUSES, type Session, type SessionUse, statusAt } from '../sessions/session.ts';
import type { SessionChange } from '../sessions/session-change.ts';
import { defined } from '../shared/defined.ts';
import { Failure, OperatorReason } from '../shared/failure.ts';
import type { IssuedBatch } from '../status-lists/status-list.ts';
import type { WalletStatus } from '../status-lists/wallet-status.ts';
import type { DeferredTransaction } from './deferred.ts';
import { mayRenew } from './renewal.ts';

/**
 * Rejects a request that could not be recorded afterwards, before claims are requested or a key signs; the commit checks the same again.
 * @param grantId of the access token, if one of our servers issued it.
 * @param use counters of the session, if they were read with it.
 * @returns the session, which may have completed.
 * @throws Failure `credential_request_denied` (OpenID4VCI 1.0 section 8.3.1.2) when the session ended, does not offer the configuration, or
 * has reached its limit.
 */
export function requireIssuable(
  session: Session | undefined,
  configurationId: string,
  now: Date,
  grantId: string | undefined,
  use?: SessionUse,
): Session {
  if (session === undefined) throw offerEndedError();
  const isRenewed = mayRenew(session, configurationId, grantId);
  if (!isRenewed && !ISSUING_STATUSES.includes(statusAt(session, now))) throw offerEndedError();
  const { request, configurationIds } = session;
  // An offer that was removed keeps only what a renewal needs.
  const isOffered = request === null ? isRenewed : request.kind === 'issuance';
  if (!isOffered || !configurationIds.includes(configurationId)) {
    throw new Failure('credential_request_denied', 'the offer does not cover this credential');
  }
  const { bit } = bitsOf(session, configurationId);
  if (use !== undefined && (use.barred & bit) !== 0) throw offerEndedError();
  return session;
}

/** Bit i stands for the i-th configuration of the offer; the offer is complete when all bits are set. */
function bitsOf({ configurationIds }: Pick<Session, 'configurationIds'>, configurationId: string) {
  return { bit: 2 ** configurationIds.indexOf(configurationId), allBits: 2 ** configurationIds.length - 1 };
}

/** Conditions on the number of issued credentials that leave capacity for one more. */
export type IssuanceLimit = Pick<SessionChange, 'issuedBelow' | 'issuedExactly'>;

type Issuing = Pick<Session, 'id' | 'status' | 'expiresAt' | 'configurationIds' | 'issuedMask'>;

/**
 * Conditions for issuing one more credential of the configuration. Within the session's lifetime, the commit also checks that the session
 * still exists, so a stale cached session is detected.
 * @param grantId of the access token.
 */
function issuanceConditions(
  session: Issuing,
  configurationId: string,
  grantId: string | undefined,
  limit: IssuanceLimit,
  now: Date,
): SessionChange {
  const isOver = session.expiresAt <= now && mayRenew(session, configurationId, grantId);
  return {
    ...(isOver ? { anytime: RENEWING_STATUSES } : { running: ISSUING_STATUSES }),
    id: session.id,
    unbarred: bitsOf(session, configurationId).bit,
    ...limit,
  };
}

/** Conditions for a request that began within the session's lifetime and may end after it. */
function lateIssuanceConditions(
  session: Issuing,
  configurationId: string,
  grantId: string | undefined,
  limit: IssuanceLimit,
): SessionChange {
  return {
    anytime: mayRenew(session, configurationId, grantId) ? RENEWING_STATUSES : ISSUING_STATUSES,
    id: session.id,
    unbarred: bitsOf(session, configurationId).bit,
    ...limit,
  };
}

/** Values that a wallet's request consumes, and the grant that must not be revoked; it is absent for a token of an external server. */
export type RequestConsumption = { readonly uses: readonly ConsumedValue[]; readonly unrevoked?: string };

export function requestConsumption(uses: readonly ConsumedValue[], grantId: string | undefined): RequestConsumption {
  return { uses, ...(grantId !== undefined && { unrevoked: grantId }) };
}

/**
 * Consumes the single-use values of the request before its backend is called. The backend may defer, so it is not called while the session
 * has reached its limit of deferred transactions.
 */
export function claim(session: Session, configurationId: string, consumed: RequestConsumption, limit: IssuanceLimit, now: Date) {
  const conditions = issuanceConditions(session, configurationId, consumed.unrevoked, limit, now);
  const change: SessionChange = { ...conditions, deferredBelow: MAX_ISSUANCES };
  return { ...consumed, session: change };
}

/**
 * Records the issued credentials; the session completes with the last one.
 * @param grantId of the access token.
 * @param consumed absent when the request was claimed before: then it may end after the session's lifetime, but not after the revocation of
 * the grant.
 */
export function issue(
  session: Session,
  batch: IssuedBatch,
  grantId: string | undefined,
  limit: IssuanceLimit,
  consumed?: RequestConsumption & { readonly now: Date },
) {
  const { credentialConfigurationId: id } = batch;
  const { bit, allBits } = bitsOf(session, id);
  const change: SessionChange = {
    ...(consumed === undefined
      ? lateIssuanceConditions(session, id, grantId, limit)
      : issuanceConditions(session, id, grantId, limit, consumed.now)),
    counts: true,
    sets: { bit, all: allBits, last: MOVES.complete },
  };
  const { now: _now, ...spends } = consumed ?? { ...requestConsumption([], grantId), now: undefined };
  return { ...spends, session: change, issued: batch };
}

/**
 * The backend deferred: the session is extended to the end of the transaction. Wallet statuses that the credentials will follow are stored
 * with it.
 */
export function defer(session: Session, transaction: DeferredTransaction, statuses: readonly WalletStatus[] = []) {
  const { credentialConfigurationId, grantId } = transaction;
  const change: SessionChange = {
    ...lateIssuanceConditions(session, credentialConfigurationId, grantId ?? undefined, {}),
    deferredBelow: MAX_ISSUANCES,
    lastsUntil: transaction.expiresAt,
  };
  const reservation = statuses.length === 0 ? undefined : { transactionId: transaction.id, statuses };
  const unrevoked = grantId ?? undefined;
  return { session: change, opens: { deferred: transaction }, ...defined({ holds: reservation, unrevoked }) };
}

/** The backend decided: the credentials are recorded and wait for the wallet, whose grant must not be revoked. */
export function complete(
  session: Session,
  { id, grantId }: Pick<DeferredTransaction, 'id' | 'grantId'>,
  credentials: readonly string[],
  batch: IssuedBatch,
  limit: IssuanceLimit,
) {
  const conditions = lateIssuanceConditions(session, batch.credentialConfigurationId, grantId ?? undefined, limit);
  const change: SessionChange = { ...conditions, counts: true };
  return {
    deferred: { id, act: 'complete', credentials, batchId: batch.id },
    session: change,
    issued: batch,
    ...(grantId !== null && { unrevoked: grantId }),
  } as const;
}

/** The wallet retrieves its credentials; the session completes with the last ones. */
export function retrieve(session: Session, transaction: DeferredTransaction, consumed: RequestConsumption) {
  const { credentialConfigurationId: configurationId, grantId } = transaction;
  const { bit, allBits } = bitsOf(session, configurationId);
  const isRenewed = mayRenew(session, configurationId, grantId ?? undefined);
  const change: SessionChange = {
    id: session.id,
    anytime: isRenewed ? RENEWING_STATUSES : ISSUING_STATUSES,
    unbarred: bit,
    sets: { bit, all: allBits, last: MOVES.complete },
  };
  return { ...consumed, deferred: { id: transaction.id, act: 'retrieve' }, session: change } as const;
}

/** @param reason for the operator's log, if it differs from the public message. */
export function offerEndedError(reason?: string): Failure {
  const options = reason === undefined ? {} : { cause: new OperatorReason(reason) };
  return new Failure('credential_request_denied', 'the offer has ended', options);
}
