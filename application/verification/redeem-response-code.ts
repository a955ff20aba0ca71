import { isSecret } from '../../domain/oauth/handle.ts';
import { awaitsResponseCode, isTerminal, type Session, type SessionOutcome } from '../../domain/sessions/session.ts';
import { updateOutcome } from '../../domain/sessions/session-change.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import type { SessionFailure } from '../../domain/shared/session-failure.ts';
import { RESPONSE_CODE_SECONDS } from '../../domain/verification/redirect.ts';
import type { CredentialResult } from '../../domain/verification/verdict.ts';
import type { CachedCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import type { SessionSnapshot } from '../sessions/sessions.ts';
import { assertVisible } from '../sessions/visibility.ts';
import { attemptFor } from '../transactions/attempt.ts';
import { type TenantTransaction, TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { ResultDelivery } from './result-delivery.ts';
import { SessionOutcomes } from './session-outcomes.ts';

/** A response code may be redeemed at the end of its lifetime; this leaves time for the delivery. */
const DELIVERY_MS = 60_000;

const MAX_ATTEMPTS = 4;

/**
 * Redeems the code that the browser brought back (OpenID4VP 1.0 sections 13.3 and 14.3), which proves that the user of the browser
 * owns the wallet that answered. A result that waited for the code is released with it, once.
 */
export class RedeemResponseCode extends needs({ ...TRANSACTION_PORTS, resultDelivery: ResultDelivery, sessionOutcomes: SessionOutcomes }) {
  /**
   * @returns the session after the redemption; it is failed if its webhook failed.
   * @throws Failure `not_found`, or `forbidden` for a code that is unknown, used or expired.
   */
  execute(caller: CachedCaller, id: SessionId, responseCode: string): Promise<SessionSnapshot> {
    return attemptFor(this.ports, caller, async (transaction, currentCaller) => {
      const tenant = await transaction.tenant.tenant();
      for (let remainingAttempts = MAX_ATTEMPTS - 1; ; remainingAttempts--) {
        const session = assertVisible(currentCaller, (await transaction.confirm(transaction.reads.session(id))).session);
        const { outcome } = session;
        if (outcome === null || !isValidCode(outcome, responseCode, transaction.now)) throw invalidCodeError();
        if (isFenced(outcome, this.ports.store.fencedAt)) throw invalidCodeError();
        const outcomeWithUse = { ...outcome, responseCodeUsedAt: transaction.now.toISOString() };
        try {
          const sessionAfter = await this.#redeem(transaction, session, outcomeWithUse);
          return { session: sessionAfter, tenant, now: this.ports.clock.now() };
        } catch (error) {
          // The first fetch by a wallet may be recorded concurrently; then the code is still valid.
          if (!(error instanceof SessionChangedError) || remainingAttempts === 0) throw error;
        }
      }
    });
  }

  /**
   * Redeems the code; the version of the session decides between concurrent requests.
   * @throws SessionChangedError when the session has another version by now; nothing was committed then.
   */
  async #redeem(transaction: TenantTransaction, session: Session, outcomeWithUse: SessionOutcome): Promise<Session> {
    const { now } = transaction;
    const { awaiting: verified, ...remainingOutcome } = outcomeWithUse;
    if (!awaitsResponseCode(session.outcome) || verified === undefined) {
      const committed = await transaction.commit({ session: updateOutcome(session, outcomeWithUse) }, { session: sessionChangedError });
      return { ...session, outcome: outcomeWithUse, ...committed.session, updatedAt: now };
    }
    if (isTerminal(session.status)) throw invalidCodeError();
    const webhook = session.request?.kind === 'verification' ? session.request.webhook : undefined;
    const outcome = { ...remainingOutcome, ...verified };
    if (webhook === undefined) {
      const change = { session: updateOutcome(session, outcome, 'complete') };
      const committed = await transaction.commit(change, { session: sessionChangedError });
      return { ...session, outcome, ...committed.session, updatedAt: now };
    }
    const { resultDelivery, sessionOutcomes } = this.ports;
    const intent = resultDelivery.intend();
    // The claim is stored first, so that the delivery can be retried if this process ends.
    const claim = { ...outcome, deliveries: [intent] };
    const lastsUntil = new Date(now.getTime() + DELIVERY_MS);
    const claimed = await transaction.claim(
      { session: { ...updateOutcome(session, claim), lastsUntil } },
      { session: sessionChangedError },
    );
    const context = { tenant: transaction.tenant, session };
    // The browser has returned already, so a redirect address in the answer has no effect.
    const credentials = (verified.credentials ?? []) as readonly CredentialResult[];
    const { delivery } = await resultDelivery.call(webhook, intent, context, credentials);
    const isDelivered = delivery.result === 'delivered';
    const failure: SessionFailure = { code: 'webhook_failed', message: delivery.detail ?? 'the webhook failed' };
    const finalOutcome = { ...outcome, deliveries: [delivery], ...(!isDelivered && { failure }) };
    const event = isDelivered ? 'complete' : 'fail';
    const claimedSession = { ...session, outcome: claim, ...claimed.session, updatedAt: now };
    const recorded = await sessionOutcomes.record(claimedSession, event, finalOutcome);
    if (recorded === undefined) throw invalidCodeError();
    return { ...recorded, status: isDelivered ? 'completed' : 'failed' };
  }
}

function isValidCode(outcome: SessionOutcome, responseCode: string, now: Date): boolean {
  const { responseCodeHash, responseCodeAt, responseCodeUsedAt } = outcome;
  if (responseCodeHash === undefined || responseCodeAt === undefined) return false;
  if (responseCodeUsedAt !== undefined || !isSecret(responseCode, responseCodeHash)) return false;
  return now.getTime() < Date.parse(responseCodeAt) + RESPONSE_CODE_SECONDS * 1000;
}

/** After a rollback of the database it is unknown if the code was redeemed, so older codes are invalid. */
function isFenced({ responseCodeAt = '' }: SessionOutcome, fencedAt: Date | undefined): boolean {
  return fencedAt !== undefined && Date.parse(responseCodeAt) <= fencedAt.getTime();
}

const BAD_CODE = 'this response_code does not belong to the session, was used or has expired';

function invalidCodeError(): Failure {
  return new Failure('forbidden', BAD_CODE);
}

/** A concurrent change came first. A retry finds out if the same code was redeemed. */
class SessionChangedError extends Failure {
  constructor() {
    super('forbidden', BAD_CODE);
  }
}

const sessionChangedError = () => new SessionChangedError();
