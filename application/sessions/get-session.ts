import { createHash, timingSafeEqual } from 'node:crypto';
import type { Session, SessionOutcome } from '../../domain/sessions/session.ts';
import { noted } from '../../domain/sessions/session-change.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import type { Tenant } from '../../domain/tenants/tenant.ts';
import { attemptFor } from '../attempt.ts';
import type { RememberedCaller } from '../caller.ts';
import { type Known, WORLD } from '../known.ts';
import { needs } from '../needs.ts';
import { visible } from './visibility.ts';

/** The browser comes back at once; a code that lies about longer is of use to somebody else only. */
const RESPONSE_CODE_SECONDS = 300;

/** One session as it is now. */
export class GetSession extends needs(WORLD) {
  /**
   * @param responseCode what the browser brought back (OpenID4VP 1.0 section 13.3): proof that the person at the
   *   browser is the one whose wallet answered. It is spent by this; without one the session can be read at any time.
   * @throws Failure `not_found`, or `forbidden` for a response code that is not this session's, was used or is old.
   */
  execute(
    caller: RememberedCaller,
    id: SessionId,
    responseCode?: string,
  ): Promise<{ readonly session: Session; readonly tenant: Tenant; readonly now: Date }> {
    return attemptFor(this.ports, caller, async (known, present) => {
      const { now, configured } = known;
      const session = visible(present, (await known.confirm(known.reads.session(id))).session);
      const seen = responseCode === undefined ? session : await this.#spend(known, session, responseCode);
      return { session: seen, tenant: await configured.tenant(), now };
    });
  }

  /** The version decides between two that bring the same code at once. */
  async #spend(known: Known, session: Session, responseCode: string): Promise<Session> {
    const { now } = known;
    if (session.outcome === null || !isGood(session.outcome, responseCode, now)) throw badCode();
    const outcome = { ...session.outcome, responseCodeUsedAt: now.toISOString() };
    const committed = await known.commit({ session: noted(session, outcome) }, { session: badCode });
    return { ...session, outcome, ...committed.session, updatedAt: now };
  }
}

function isGood(outcome: SessionOutcome, responseCode: string, now: Date): boolean {
  const { responseCodeHash, responseCodeAt, responseCodeUsedAt } = outcome;
  if (responseCodeHash === undefined || responseCodeAt === undefined) return false;
  if (responseCodeUsedAt !== undefined || !isCodeOf(responseCodeHash, responseCode)) return false;
  return now.getTime() < Date.parse(responseCodeAt) + RESPONSE_CODE_SECONDS * 1000;
}

function badCode(): Failure {
  return new Failure(
    'forbidden',
    'this response_code does not belong to the session, was used or is too old',
  );
}

function isCodeOf(hash: string, responseCode: string): boolean {
  const expected = Buffer.from(hash, 'base64url');
  const given = createHash('sha256').update(responseCode).digest();
  return expected.length === given.length && timingSafeEqual(expected, given);
}
