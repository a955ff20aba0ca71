import type { ServiceSettings } from '../../../application/ports/settings.ts';
import type { Reply } from '../route.ts';

/** A purpose for which a browser leaves the service and returns to it. */
type RoundTrip = {
  readonly name: string;
  /** Folder to which it returns, below the tenant. */
  readonly folder: string;
};

/** Login at the upstream provider of the chained server. */
export const LOGIN: RoundTrip = { name: 'vidimus-login-', folder: 'chained-as' };
/** Consent of the user to an interactive authorization. */
export const CONSENT: RoundTrip = { name: 'vidimus-consent-', folder: 'authorize' };
/** Visit of a page of the tenant, in an interactive authorization. */
export const VISIT: RoundTrip = { name: 'vidimus-visit-', folder: 'interactive-authorization' };

type CookieContext = { readonly settings: ServiceSettings; readonly tenantId: string; readonly roundTrip: RoundTrip };

/**
 * `Set-Cookie` value that binds an authorization to the browser that left. The browser returns by a link of another site, for which
 * `SameSite=Lax` is the strictest setting. There is one cookie per authorization, with the id in its name, so that several authorizations
 * in one browser do not collide.
 */
export function browserCookie(
  context: CookieContext,
  cookie: { readonly authorizationId: string; readonly browserSecret: string; readonly seconds: number },
): string {
  return [
    `${nameAt(context)}${cookie.authorizationId}=${cookie.browserSecret}`,
    `Path=${pathAt(context)}`,
    `Max-Age=${cookie.seconds}`,
    'HttpOnly',
    'SameSite=Lax',
    ...(isSecure(context) ? ['Secure'] : []),
  ].join('; ');
}

/** `Set-Cookie` value that deletes the cookie of a finished round trip. */
export function expiredBrowserCookie(context: CookieContext, authorizationId: string): string {
  return browserCookie(context, { authorizationId, browserSecret: '', seconds: 0 });
}

/** Browser secrets by the id of their authorization. @param header the `Cookie` header. */
export function parseBrowserCookies(context: CookieContext, header: string | undefined): ReadonlyMap<string, string> {
  const name = nameAt(context);
  const secrets = new Map<string, string>();
  for (const pair of (header ?? '').split(';')) {
    const [cookieName = '', value = ''] = pair.trim().split('=', 2);
    if (cookieName.startsWith(name)) secrets.set(cookieName.slice(name.length), value);
  }
  return secrets;
}

function isSecure({ settings }: Pick<CookieContext, 'settings'>): boolean {
  return settings.publicUrl.startsWith('https:');
}

/** RFC 6265bis section 4.1.3.2: with the prefix, neither an insecure connection nor a sibling domain can set the cookie. */
function nameAt(context: CookieContext): string {
  return isSecure(context) ? `__Host-${context.roundTrip.name}` : context.roundTrip.name;
}

/** The prefix requires the root path (RFC 6265bis section 4.1.3.2); without it the path is as narrow as possible. */
function pathAt({ settings, tenantId, roundTrip }: CookieContext): string {
  if (isSecure({ settings })) return '/';
  const base = new URL(settings.publicUrl).pathname.replace(/\/$/, '');
  return `${base}/${tenantId}/${roundTrip.folder}`;
}

/** Redirects after a form with 303, never 307, so that the browser does not send the form on (FAPI 2.0 section 5.3.2.2). */
export function seeOther(location: string, cookie: string | undefined): Reply {
  return redirect(303, location, cookie);
}

/** Redirects after a GET request. */
export function redirectTo(location: string, cookie: string | undefined): Reply {
  return redirect(302, location, cookie);
}

function redirect(status: 302 | 303, location: string, cookie: string | undefined): Reply {
  const headers = { Location: location, ...(cookie !== undefined && { 'Set-Cookie': cookie }) };
  return { status, empty: true, headers };
}
