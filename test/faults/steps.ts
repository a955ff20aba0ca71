import { setTimeout as pause } from 'node:timers/promises';
import type { Answer } from '../support/test-service.ts';
import { ConnectionRefusedError, NoAnswer } from './calls.ts';
import type { Ledger } from './ledger.ts';

const AFTER_SILENCE_MS = 40;
/** Maximum attempts of a caller. */
const ATTEMPTS = 60;

/** Result of a step. `isSure`: no earlier attempt may have had an unreported effect. */
export type Outcome = { readonly answer: Answer; readonly isSure: boolean };

/** Calls that are repeated until they are answered. */
export class Steps {
  readonly ledger: Ledger;
  /** Steps are no longer repeated. */
  isFinal = false;
  /** Rejections are tolerated, since a clock is wrong. Double use is still a violation. */
  isForgiving = false;

  constructor(ledger: Ledger) {
    this.ledger = ledger;
  }

  /** @throws NoAnswer when it is given up. */
  async attempt(description: string, call: () => Promise<Answer>): Promise<Outcome> {
    const { counts } = this.ledger;
    let isSure = true;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      if (attempt > 0) {
        if (this.isFinal) break;
        await pause(AFTER_SILENCE_MS);
      }
      try {
        const answer = await call();
        if (answer.status === 500) this.ledger.violate(`${description}: 500 ${answer.text}`);
        if (answer.status < 500 && answer.status !== 429) {
          counts.answered++;
          return { answer, isSure };
        }
        counts.unavailable++;
        isSure = false;
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error;
        if (error instanceof ConnectionRefusedError) {
          counts.refused++;
          continue;
        }
        counts.unanswered++;
        this.ledger.log('no answer', { step: description, why: error.message });
        isSure = false;
      }
    }
    throw new NoAnswer(`${description}: given up`);
  }

  /**
   * Expects that an acknowledged step allows the next one.
   * @returns the response; undefined for a rejection that an earlier attempt may explain.
   */
  async expectStatus(description: string, status: number, call: () => Promise<Answer>): Promise<Answer | undefined> {
    const { answer, isSure } = await this.attempt(description, call);
    if (answer.status === status) return answer;
    if (isSure && !this.isForgiving) this.ledger.violate(`${description}: ${answer.status} ${answer.text.slice(0, 300)}`);
    return undefined;
  }
}
