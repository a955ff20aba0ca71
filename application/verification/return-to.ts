import { hash } from 'node:crypto';
import type { Session, SessionOutcome } from '../../domain/sessions/session.ts';
import { returnAddress, withResponseCode } from '../../domain/verification/redirect.ts';
import type { Clock } from '../ports/clock.ts';
import type { Random } from '../ports/random.ts';
import { issuerIdentifier, type ServiceSettings } from '../ports/settings.ts';

/** OpenID4VP 1.0 section 8.2. */
export type ResponseReply = { readonly redirect_uri: string };

export type Returning = { readonly reply: ResponseReply; readonly outcome: SessionOutcome };

/** Below the address of a tenant: what a person sees whom nobody else wanted to be sent back. */
export const PRESENTED = 'presented';

type Ports = { readonly random: Random; readonly clock: Clock; readonly settings: Pick<ServiceSettings, 'publicUrl'> };

/**
 * Where the wallet sends the browser (OpenID4VP 1.0 section 13.3): the code goes through it, and its hash is kept. HAIP 1.0
 * section 5.1 wants an address in every answer, so there is a page of the service where none was configured; what its code
 * would prove nobody waits for, so it is not kept.
 * @param template address with a placeholder for the session; undefined for none.
 * @param isCrossDevice whether the wallet used the link for another device than the browser.
 */
export function returnTo(
  { random, clock, settings }: Ports,
  template: string | undefined,
  session: Session,
  outcome: SessionOutcome,
  isCrossDevice = false,
): Returning {
  // The browser of the other device has no session with the application, so it gets neither its address nor a code.
  if (isCrossDevice) {
    const page = `${issuerIdentifier(settings, session.tenantId)}/${PRESENTED}`;
    return { reply: { redirect_uri: page }, outcome };
  }
  if (template === undefined) {
    const page = `${issuerIdentifier(settings, session.tenantId)}/${PRESENTED}`;
    return { reply: { redirect_uri: withResponseCode(page, random.token()) }, outcome };
  }
  const redirectUri = returnAddress(template, session.id);
  const code = random.token();
  const responseCodeHash = hash('sha256', code, 'base64url');
  return {
    reply: { redirect_uri: withResponseCode(redirectUri, code) },
    outcome: { ...outcome, redirectUri, responseCodeHash, responseCodeAt: clock.now().toISOString() },
  };
}
