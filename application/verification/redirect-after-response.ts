import { hash } from 'node:crypto';
import type { Session, SessionOutcome } from '../../domain/sessions/session.ts';
import { redirectAddress, withResponseCode } from '../../domain/verification/redirect.ts';
import type { Clock } from '../ports/clock.ts';
import type { Random } from '../ports/random.ts';
import { issuerIdentifier, type ServiceSettings } from '../ports/settings.ts';

/** OpenID4VP 1.0 section 8.2. */
export type ResponseReply = { readonly redirect_uri: string };

export type RedirectedOutcome = { readonly reply: ResponseReply; readonly outcome: SessionOutcome };

/** Path below the address of a tenant: a page for users that the application does not redirect. */
export const PRESENTED_PATH = 'presented';

type Ports = { readonly random: Random; readonly clock: Clock; readonly settings: Pick<ServiceSettings, 'publicUrl'> };

/**
 * The redirect of the browser by the wallet (OpenID4VP 1.0 section 13.3): the code is part of the address, and its hash is stored.
 * HAIP 1.0 section 5.1 requires an address in every response, so a page of the service is used by default; its code is not
 * stored, since nothing waits for it.
 * @param template address with a placeholder for the session; undefined for none.
 * @param isCrossDevice true if the wallet is on another device than the browser.
 */
export function redirectAfterResponse(
  { random, clock, settings }: Ports,
  template: string | undefined,
  session: Session,
  outcome: SessionOutcome,
  isCrossDevice = false,
): RedirectedOutcome {
  // The browser of the other device has no session with the application, so it gets neither its address nor a code.
  if (isCrossDevice) {
    const page = `${issuerIdentifier(settings, session.tenantId)}/${PRESENTED_PATH}`;
    return { reply: { redirect_uri: page }, outcome };
  }
  if (template === undefined) {
    const page = `${issuerIdentifier(settings, session.tenantId)}/${PRESENTED_PATH}`;
    return { reply: { redirect_uri: withResponseCode(page, random.token()) }, outcome };
  }
  const redirectUri = redirectAddress(template, session.id);
  const code = random.token();
  const responseCodeHash = hash('sha256', code, 'base64url');
  return {
    reply: { redirect_uri: withResponseCode(redirectUri, code) },
    outcome: { ...outcome, redirectUri, responseCodeHash, responseCodeAt: clock.now().toISOString() },
  };
}
