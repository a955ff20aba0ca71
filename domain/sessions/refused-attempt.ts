import type { RefusedAttempt, SessionOutcome } from './session.ts';

/** More are not recorded for a session, so that a wallet or attacker that sends without end causes no more writes. */
export const MAX_RECORDED_ATTEMPTS = 20;

/** @returns the outcome with one attempt more, or undefined when the session has as many as it may record. */
export function withAttempt(outcome: SessionOutcome | null, attempt: RefusedAttempt): SessionOutcome | undefined {
  const { attempts = [] } = outcome ?? {};
  return attempts.length < MAX_RECORDED_ATTEMPTS ? { ...outcome, attempts: [...attempts, attempt] } : undefined;
}

/** The next outcome of a session, which replaces the former one, with the attempts that were recorded before. */
export function keepingAttempts(former: SessionOutcome | null, outcome: SessionOutcome): SessionOutcome {
  return former?.attempts === undefined ? outcome : { attempts: former.attempts, ...outcome };
}
