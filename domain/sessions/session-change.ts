import { Failure } from '../shared/failure.ts';
import type { SessionId } from '../shared/ids.ts';
import { type DeliveryMark, markOf } from './delivery-mark.ts';
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

/** What one step expects of a session, and what is to become of it. All of it happens, or nothing. */
export type SessionChange = {
  readonly id: SessionId;
  /** Statuses in which it may happen as long as the session's time is not over. */
  readonly running?: readonly SessionStatus[];
  /** Statuses in which it may happen also after that. */
  readonly anytime?: readonly SessionStatus[];
  /** The session is at this version. */
  readonly version?: number;
  /** Nobody has taken a response in. */
  readonly unanswered?: true;
  /** Bits of configurations that must not be barred by a revocation. */
  readonly unbarred?: number;
  /** It recorded fewer issuances than this. */
  readonly issuedBelow?: number;
  /** It has fewer deferred transactions than this. */
  readonly deferredBelow?: number;
  /** It recorded exactly so many issuances, or is gone: what it issued is kept longer than the session. */
  readonly issuedExactly?: number;

  readonly to?: SessionStatus;
  /** A response is taken in: nobody else can answer. */
  readonly answers?: true;
  /** Replaces what was recorded before. */
  readonly outcome?: SessionOutcome;
  /** One more issuance is on record. */
  readonly counts?: true;
  /** A configuration's credential has been handed out; `last` happens with the last one. */
  readonly sets?: { readonly bit: number; readonly all: number; readonly last: SessionTransition };
  /** Bits of configurations that may be issued no more, or again. */
  readonly bars?: { readonly mask: number; readonly barred: boolean };
  /** It lives at least as long. */
  readonly lastsUntil?: Date;
  /** It lives exactly as long, whether that is longer or shorter than before. */
  readonly endsAt?: Date;
  /** A delivery was begun, or came to its end. */
  readonly delivery?: DeliveryMark;
  /** The session has ended, and no delivery needs its request: a large one is erased unless the session issued something. */
  readonly erasesRequest?: true;
};

/**
 * @param outcome replaces what was recorded before.
 * @throws Failure `conflict` when `event` cannot happen in the present status.
 */
export function advance(session: Pick<Session, 'id' | 'status'>, event: SessionEvent, outcome?: SessionOutcome): SessionChange {
  const { from, to }: SessionTransition = MOVES[event];
  if (!from.includes(session.status)) throw new Failure('conflict', `the session is ${session.status} and cannot change any more`);
  return { id: session.id, anytime: from, to, ...(outcome !== undefined && { outcome }) };
}

/** Later fetches change nothing. */
export function isUnfetched({ status }: Pick<Session, 'status'>): boolean {
  return (MOVES.fetch.from as readonly string[]).includes(status);
}

/** A rejected response is recorded with a session that is open and has no accepted response. */
export function attempted({ id, version }: Pick<Session, 'id' | 'version'>, outcome: SessionOutcome): SessionChange {
  return { id, version, running: OPEN_STATUSES, unanswered: true, outcome };
}

/** A judged response is taken in, and its backend is called next: of several at once exactly one goes on. */
export function delivering({ id }: Pick<Session, 'id'>, outcome: SessionOutcome): SessionChange {
  return { id, running: OPEN_STATUSES, unanswered: true, answers: true, outcome, ...marking(outcome) };
}

/** A request that no wallet fulfilled is needed only to retry a delivery. A wallet waits for claims, so they are never retried. */
export function erasing({ deliveries = [] }: SessionOutcome): Pick<SessionChange, 'erasesRequest'> {
  const isNeeded = deliveries.some(({ webhook, result }) => webhook !== 'claims' && result !== 'delivered');
  return isNeeded ? {} : { erasesRequest: true };
}

function marking(outcome: SessionOutcome): Pick<SessionChange, 'delivery'> {
  const delivery = markOf(outcome);
  return delivery === undefined ? {} : { delivery };
}

/** A response is taken in and judged in one step. */
export function answered({ id }: Pick<Session, 'id'>, event: 'complete' | 'fail', outcome: SessionOutcome): SessionChange {
  return {
    id,
    running: MOVES[event].from,
    unanswered: true,
    answers: true,
    to: MOVES[event].to,
    outcome,
    ...marking(outcome),
    ...(event === 'fail' && erasing(outcome)),
  };
}

/** An open session as it is known fails while its time is not over. */
export function failed({ id, version }: Pick<Session, 'id' | 'version'>, outcome: SessionOutcome): SessionChange {
  return { id, version, running: MOVES.fail.from, to: MOVES.fail.to, outcome, ...erasing(outcome) };
}

/** A good response is taken in and kept until the browser comes, whose time is all that the session has left. */
export function awaiting({ id }: Pick<Session, 'id'>, outcome: SessionOutcome, endsAt: Date): SessionChange {
  return { id, running: OPEN_STATUSES, unanswered: true, answers: true, outcome, endsAt };
}

/**
 * What becomes of a session whose response was taken in and whose time is over: it failed where all that it waited for was
 * the browser, else it expired.
 */
export function overdue({ id, version, outcome }: Pick<Session, 'id' | 'version' | 'outcome'>): SessionChange {
  const common = { id, version, anytime: OPEN_STATUSES };
  if (!awaitsResponseCode(outcome)) return { ...common, to: MOVES.expire.to, ...erasing(outcome ?? {}) };
  const { awaiting: _values, ...rest } = outcome ?? {};
  const failure = RESPONSE_CODE_MISSING;
  return { ...common, to: MOVES.fail.to, outcome: { ...rest, failure }, ...erasing(rest) };
}

/** Something is noted of a session as it is known; `event` happens with it where it still can. */
export function noted(
  { id, version, status }: Pick<Session, 'id' | 'version' | 'status'>,
  outcome: SessionOutcome,
  event?: 'complete' | 'fail',
): SessionChange {
  const move: SessionTransition | undefined = event && MOVES[event];
  const happens = move?.from.includes(status) === true;
  const ended = happens ? move.to : status;
  return {
    id,
    version,
    outcome,
    ...marking(outcome),
    ...((ended === 'failed' || ended === 'expired') && erasing(outcome)),
    ...(happens ? { anytime: move.from, to: move.to } : { anytime: SESSION_STATUSES }),
  };
}
