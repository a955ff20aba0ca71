import { Failure } from '../shared/failure.ts';
import type { SessionId } from '../shared/ids.ts';
import { type DeliveryMark, deliveryMarkOf } from './delivery-mark.ts';
import {
  awaitsResponseCode,
  MOVES,
  OPEN_STATUSES,
  RESPONSE_CODE_MISSING,
  SESSION_STATUSES,
  type Session,
  type SessionEvent,
  type SessionOutcome,
  type SessionStatus,
  type SessionTransition,
} from './session.ts';

/** Conditions and effects of one step on a session. They are applied atomically. */
export type SessionChange = {
  readonly id: SessionId;
  /** Condition: one of these statuses, and the session has not expired. */
  readonly running?: readonly SessionStatus[];
  /** Condition: one of these statuses, also after expiry. */
  readonly anytime?: readonly SessionStatus[];
  readonly version?: number;
  /** Condition: no response was accepted. */
  readonly unanswered?: true;
  /** Condition: a revocation has not barred these bits of configurations. */
  readonly unbarred?: number;
  /** Condition: it recorded fewer issuances. */
  readonly issuedBelow?: number;
  /** Condition: it has fewer deferred transactions. */
  readonly deferredBelow?: number;
  /** Condition: it recorded exactly this number of issuances, or was deleted, because issued batches are stored longer than the session. */
  readonly issuedExactly?: number;

  readonly to?: SessionStatus;
  /** Effect: a response is accepted, and further ones are rejected. */
  readonly answers?: true;
  readonly outcome?: SessionOutcome;
  /** Effect: counts one more issuance. */
  readonly counts?: true;
  /** Effect: marks a configuration as issued; `last` applies with the last one. */
  readonly sets?: { readonly bit: number; readonly all: number; readonly last: SessionTransition };
  /** Effect: bars bits of configurations from issuance, or permits them again. */
  readonly bars?: { readonly mask: number; readonly barred: boolean };
  /** Effect: extends the lifetime to at least this time. */
  readonly lastsUntil?: Date;
  /** Effect: sets the end, later or earlier than before. */
  readonly endsAt?: Date;
  /** Effect: a delivery began or ended. */
  readonly delivery?: DeliveryMark;
  /** Effect: the session has ended, and no delivery needs its request: a large one is erased unless the session issued something. */
  readonly erasesRequest?: true;
};

/**
 * @param outcome replaces the previous one.
 * @throws Failure `conflict` when `event` is not possible in the current status.
 */
export function advance(session: Pick<Session, 'id' | 'status'>, event: SessionEvent, outcome?: SessionOutcome): SessionChange {
  const { from, to }: SessionTransition = MOVES[event];
  if (!from.includes(session.status)) throw new Failure('conflict', `the session is ${session.status} and cannot change any more`);
  return { id: session.id, anytime: from, to, ...(outcome !== undefined && { outcome }) };
}

/** Only the first fetch changes the status. */
export function isUnfetched({ status }: Pick<Session, 'status'>): boolean {
  return (MOVES.fetch.from as readonly string[]).includes(status);
}

/** Records a rejected response with an open session that has no accepted response. */
export function recordAttempt({ id, version }: Pick<Session, 'id' | 'version'>, outcome: SessionOutcome): SessionChange {
  return { id, version, running: OPEN_STATUSES, unanswered: true, outcome };
}

/** Accepts a validated response before its backend is called: exactly one of several concurrent responses succeeds. */
export function acceptForDelivery({ id }: Pick<Session, 'id'>, outcome: SessionOutcome): SessionChange {
  return { id, running: OPEN_STATUSES, unanswered: true, answers: true, outcome, ...deliveryChange(outcome) };
}

/** A request that no wallet fulfilled is needed only to retry a delivery. Claims are never retried, because a wallet waits for them. */
export function requestErasure({ deliveries = [] }: SessionOutcome): Pick<SessionChange, 'erasesRequest'> {
  const isNeeded = deliveries.some(({ webhook, result }) => webhook !== 'claims' && result !== 'delivered');
  return isNeeded ? {} : { erasesRequest: true };
}

function deliveryChange(outcome: SessionOutcome): Pick<SessionChange, 'delivery'> {
  const delivery = deliveryMarkOf(outcome);
  return delivery === undefined ? {} : { delivery };
}

export function acceptAndEnd({ id }: Pick<Session, 'id'>, event: 'complete' | 'fail', outcome: SessionOutcome): SessionChange {
  return {
    id,
    running: MOVES[event].from,
    unanswered: true,
    answers: true,
    to: MOVES[event].to,
    outcome,
    ...deliveryChange(outcome),
    ...(event === 'fail' && requestErasure(outcome)),
  };
}

export function failSession({ id, version }: Pick<Session, 'id' | 'version'>, outcome: SessionOutcome): SessionChange {
  return { id, version, running: MOVES.fail.from, to: MOVES.fail.to, outcome, ...requestErasure(outcome) };
}

/** Accepts a response and withholds it until the browser returns, before which the session ends. */
export function acceptAndAwaitCode({ id }: Pick<Session, 'id'>, outcome: SessionOutcome, endsAt: Date): SessionChange {
  return { id, running: OPEN_STATUSES, unanswered: true, answers: true, outcome, endsAt };
}

/** Ends a session with an accepted response after its expiry: it failed if it waited for the browser only, otherwise it expired. */
export function endOverdueSession({ id, version, outcome }: Pick<Session, 'id' | 'version' | 'outcome'>): SessionChange {
  const common = { id, version, anytime: OPEN_STATUSES };
  if (!awaitsResponseCode(outcome)) return { ...common, to: MOVES.expire.to, ...requestErasure(outcome ?? {}) };
  const { awaiting: _values, ...remainingOutcome } = outcome ?? {};
  const failure = RESPONSE_CODE_MISSING;
  return { ...common, to: MOVES.fail.to, outcome: { ...remainingOutcome, failure }, ...requestErasure(remainingOutcome) };
}

/** Updates the outcome of a session; `event` applies if it is still possible. */
export function updateOutcome(
  { id, version, status }: Pick<Session, 'id' | 'version' | 'status'>,
  outcome: SessionOutcome,
  event?: 'complete' | 'fail',
): SessionChange {
  const move: SessionTransition | undefined = event && MOVES[event];
  const isPossible = move?.from.includes(status) === true;
  const resultingStatus = isPossible ? move.to : status;
  return {
    id,
    version,
    outcome,
    ...deliveryChange(outcome),
    ...((resultingStatus === 'failed' || resultingStatus === 'expired') && requestErasure(outcome)),
    ...(isPossible ? { anytime: move.from, to: move.to } : { anytime: SESSION_STATUSES }),
  };
}
