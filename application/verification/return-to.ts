import { hash } from 'node:crypto';
import type { Session, SessionOutcome } from '../../domain/sessions/session.ts';
import { returnAddress, withResponseCode } from '../../domain/verification/redirect.ts';
import type { Clock } from '../ports/clock.ts';
import type { Random } from '../ports/random.ts';

/** OpenID4VP 1.0 section 8.2. */
export type ResponseReply = { readonly redirect_uri?: string };

export type Returning = { readonly reply: ResponseReply; readonly outcome: SessionOutcome };

/**
 * Where the wallet sends the browser, if anywhere (OpenID4VP 1.0 section 13.3): the code goes through it, and its hash is
 * kept.
 * @param template address with a placeholder for the session; undefined for none.
 */
export function returnTo(
  { random, clock }: { readonly random: Random; readonly clock: Clock },
  template: string | undefined,
  session: Session,
  outcome: SessionOutcome,
): Returning {
  if (template === undefined) return { reply: {}, outcome };
  const redirectUri = returnAddress(template, session.id);
  const code = random.token();
  const responseCodeHash = hash('sha256', code, 'base64url');
  return {
    reply: { redirect_uri: withResponseCode(redirectUri, code) },
    outcome: { ...outcome, redirectUri, responseCodeHash, responseCodeAt: clock.now().toISOString() },
  };
}
