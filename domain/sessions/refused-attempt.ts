import type { RefusedAttempt, SessionOutcome } from './session.ts';

/** Limit of recorded attempts per session, so that endless requests of a wallet or attacker cause no further writes. */
export const MAX_RECORDED_ATTEMPTS = 20;

/** @returns the outcome with the attempt, or undefined above the limit. */
export function appendAttempt(outcome: SessionOutcome | null, attempt: RefusedAttempt): SessionOutcome | undefined {
  const { attempts = [] } = outcome ?? {};
  return attempts.length < MAX_RECORDED_ATTEMPTS ? { ...outcome, attempts: [...attempts, attempt] } : undefined;
}

/** The next outcome of a session, which replaces the previous one, with the recorded attempts. */
export function retainAttempts(previousOutcome: SessionOutcome | null, outcome: SessionOutcome): SessionOutcome {
  return previousOutcome?.attempts === undefined ? outcome : { attempts: previousOutcome.attempts, ...outcome };
}
