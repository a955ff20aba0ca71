import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { type Session, statusAt } from '../../domain/sessions/session.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { MAX_ISSUANCES, type SessionUse } from '../ports/store.ts';
import { claimsSource } from './collect-claims.ts';

/**
 * What could not be recorded afterwards is refused before anybody is asked for claims or signs; the record decides again.
 * A backend that may put things off is not asked while the session has no room for a transaction.
 * @param use what the session has used up, as its request was claimed.
 * @returns the session, which may have completed.
 * @throws Failure `credential_request_denied` (OpenID4VCI 1.0 section 8.3.1.2) when it is over, does not offer the
 *   configuration, or may issue no more of it.
 */
export function issuingSession(
  session: Session | undefined,
  use: SessionUse | undefined,
  configuration: CredentialConfiguration,
  now: Date,
): Session {
  const status = session === undefined ? undefined : statusAt(session, now);
  if (session === undefined || status === 'failed' || status === 'expired') throw offerOver();
  const { request, configurationIds } = session;
  if (request?.kind !== 'issuance' || !configurationIds.includes(configuration.id)) {
    throw new Failure('credential_request_denied', 'the offer does not cover this credential');
  }
  const { bit } = bitsOf(session, configuration.id);
  if (use === undefined || use.issued >= MAX_ISSUANCES || (use.barred & bit) !== 0) throw offerOver();
  const asksBackend = claimsSource(request, configuration).type === 'webhook';
  if (asksBackend && use.deferred >= MAX_ISSUANCES) throw offerOver();
  return session;
}

/** Bit i stands for the i-th configuration of the offer; all of them together complete it. */
export function bitsOf({ configurationIds }: Pick<Session, 'configurationIds'>, configurationId: string) {
  return {
    bit: 2 ** configurationIds.indexOf(configurationId),
    completeMask: 2 ** configurationIds.length - 1,
  };
}

/** For a session that issues nothing more. */
export function offerOver(): Failure {
  return new Failure('credential_request_denied', 'the offer is over');
}
