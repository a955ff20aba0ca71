import { isSecret } from '../../domain/oauth/handle.ts';
import { awaitsResponseCode, isTerminal, type Session, type SessionOutcome } from '../../domain/sessions/session.ts';
import { noted } from '../../domain/sessions/session-change.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import type { SessionFailure } from '../../domain/shared/session-failure.ts';
import { RESPONSE_CODE_SECONDS } from '../../domain/verification/redirect.ts';
import type { CredentialResult } from '../../domain/verification/verdict.ts';
import type { RememberedCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import type { SeenSession } from '../sessions/sessions.ts';
import { visible } from '../sessions/visibility.ts';
import { attemptFor } from '../transactions/attempt.ts';
import { type Known, WORLD } from '../transactions/known.ts';
import { ResultDelivery } from './result-delivery.ts';
import { SessionOutcomes } from './session-outcomes.ts';

/** A backend that is slow is waited for at the end of the five minutes, too. */
const DELIVERY_MS = 60_000;

/** So often the session is read anew when it moved meanwhile. */
const TRIES = 4;

/**
 * Takes the code that the browser brought back (OpenID4VP 1.0 sections 13.3 and 14.3): proof that the person at the browser is
 * the one whose wallet answered. A result that waited for it is handed out with it, once.
 */
export class SpendResponseCode extends needs({ ...WORLD, resultDelivery: ResultDelivery, sessionOutcomes: SessionOutcomes }) {
  /**
   * @returns the session afterwards; it failed when the webhook that had to hear of it did.
   * @throws Failure `not_found`, or `forbidden` for a code that is not this session's, was used or is old.
   */
  execute(caller: RememberedCaller, id: SessionId, responseCode: string): Promise<SeenSession> {
    return attemptFor(this.ports, caller, async (known, present) => {
      const tenant = await known.configured.tenant();
      for (let left = TRIES - 1; ; left--) {
        const session = visible(present, (await known.confirm(known.reads.session(id))).session);
        const { outcome } = session;
        if (outcome === null || !isGood(outcome, responseCode, known.now)) throw badCode();
        if (isEnded(outcome, this.ports.store.fencedAt)) throw badCode();
        const used = { ...outcome, responseCodeUsedAt: known.now.toISOString() };
        try {
          const spent = await this.#spend(known, session, used);
          return { session: spent, tenant, now: this.ports.clock.now() };
        } catch (error) {
          // That the wallet fetched the request may be noted just now, which makes no code bad.
          if (!(error instanceof Moved) || left === 0) throw error;
        }
      }
    });
  }

  /**
   * The version decides between those that bring the same code at once.
   * @throws Moved when the session is at another version by now; nothing has happened then.
   */
  async #spend(known: Known, session: Session, spent: SessionOutcome): Promise<Session> {
    const { now } = known;
    const { awaiting: verified, ...rest } = spent;
    if (!awaitsResponseCode(session.outcome) || verified === undefined) {
      const committed = await known.commit({ session: noted(session, spent) }, { session: moved });
      return { ...session, outcome: spent, ...committed.session, updatedAt: now };
    }
    if (isTerminal(session.status)) throw badCode();
    const webhook = session.request?.kind === 'verification' ? session.request.webhook : undefined;
    const outcome = { ...rest, ...verified };
    if (webhook === undefined) {
      const change = { session: noted(session, outcome, 'complete') };
      const committed = await known.commit(change, { session: moved });
      return { ...session, outcome, ...committed.session, updatedAt: now };
    }
    const { resultDelivery, sessionOutcomes } = this.ports;
    const intent = resultDelivery.intend();
    // Nothing waits any more, and whoever dies during the call leaves behind what can be delivered again.
    const claim = { ...outcome, deliveries: [intent] };
    const lastsUntil = new Date(now.getTime() + DELIVERY_MS);
    const claimed = await known.claim({ session: { ...noted(session, claim), lastsUntil } }, { session: moved });
    const about = { configured: known.configured, session };
    // The browser is back already, so an address in the answer leads nobody anywhere.
    const credentials = (verified.credentials ?? []) as readonly CredentialResult[];
    const { delivery } = await resultDelivery.call(webhook, intent, about, credentials);
    const isDelivered = delivery.result === 'delivered';
    const failure: SessionFailure = { code: 'webhook_failed', message: delivery.detail ?? 'the webhook failed' };
    const ended = { ...outcome, deliveries: [delivery], ...(!isDelivered && { failure }) };
    const event = isDelivered ? 'complete' : 'fail';
    const told = { ...session, outcome: claim, ...claimed.session, updatedAt: now };
    const recorded = await sessionOutcomes.record(told, event, ended);
    if (recorded === undefined) throw badCode();
    return { ...recorded, status: isDelivered ? 'completed' : 'failed' };
  }
}

function isGood(outcome: SessionOutcome, responseCode: string, now: Date): boolean {
  const { responseCodeHash, responseCodeAt, responseCodeUsedAt } = outcome;
  if (responseCodeHash === undefined || responseCodeAt === undefined) return false;
  if (responseCodeUsedAt !== undefined || !isSecret(responseCode, responseCodeHash)) return false;
  return now.getTime() < Date.parse(responseCodeAt) + RESPONSE_CODE_SECONDS * 1000;
}

/** Whether it was spent is not known of a database that was put back. */
function isEnded({ responseCodeAt = '' }: SessionOutcome, fencedAt: Date | undefined): boolean {
  return fencedAt !== undefined && Date.parse(responseCodeAt) <= fencedAt.getTime();
}

const BAD_CODE = 'this response_code does not belong to the session, was used or is too old';

function badCode(): Failure {
  return new Failure('forbidden', BAD_CODE);
}

/** Another change came first. Whoever brought the same code is seen by the next reading. */
class Moved extends Failure {
  constructor() {
    super('forbidden', BAD_CODE);
  }
}

const moved = () => new Moved();
