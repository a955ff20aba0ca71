import type { ServiceSettings } from '../../../application/ports/settings.ts';
import type { Reply } from '../route.ts';

/** What a browser leaves us for and comes back to. */
type Errand = {
  readonly name: string;
  /** Where it comes back to, below the tenant. */
  readonly folder: string;
};

/** To the upstream provider of the chained server. */
export const LOGIN: Errand = { name: 'vidimus-login-', folder: 'chained-as' };
/** To the user, with the question about the wallet of an interactive authorization. */
export const CONSENT: Errand = { name: 'vidimus-consent-', folder: 'authorize' };
/** To a page of the customer. */
export const VISIT: Errand = { name: 'vidimus-visit-', folder: 'interactive-authorization' };

type Place = { readonly settings: ServiceSettings; readonly tenantId: string; readonly errand: Errand };

/**
 * A `Set-Cookie` value that binds an authorization to the browser that went. It comes back by a link of another site,
 * for which `SameSite=Lax` is as strict as it can be. There is one cookie per authorization, so that several in one
 * browser do not meet; its name carries the id.
 */
export function browserCookie(
  place: Place,
  kept: { readonly authorizationId: string; readonly browserSecret: string; readonly seconds: number },
): string {
  return [
    `${nameAt(place)}${kept.authorizationId}=${kept.browserSecret}`,
    `Path=${pathAt(place)}`,
    `Max-Age=${kept.seconds}`,
    'HttpOnly',
    'SameSite=Lax',
    ...(isSecure(place) ? ['Secure'] : []),
  ].join('; ');
}

/** A `Set-Cookie` value that takes the cookie of a finished errand away. */
export function spentBrowserCookie(place: Place, authorizationId: string): string {
  return browserCookie(place, { authorizationId, browserSecret: '', seconds: 0 });
}

/** What a browser kept, by the id of the authorization. @param header the `Cookie` header. */
export function parseBrowserCookies(place: Place, header: string | undefined): ReadonlyMap<string, string> {
  const name = nameAt(place);
  const kept = new Map<string, string>();
  for (const pair of (header ?? '').split(';')) {
    const [given = '', value = ''] = pair.trim().split('=', 2);
    if (given.startsWith(name)) kept.set(given.slice(name.length), value);
  }
  return kept;
}

function isSecure({ settings }: Pick<Place, 'settings'>): boolean {
  return settings.publicUrl.startsWith('https:');
}

/** RFC 6265bis section 4.1.3.2: neither an insecure connection nor a neighbour under the same domain can plant it. */
function nameAt(place: Place): string {
  return isSecure(place) ? `__Host-${place.errand.name}` : place.errand.name;
}

/** What RFC 6265bis section 4.1.3.2 demands of the prefix; without it as narrow as can be. */
function pathAt({ settings, tenantId, errand }: Place): string {
  if (isSecure({ settings })) return '/';
  const base = new URL(settings.publicUrl).pathname.replace(/\/$/, '');
  return `${base}/${tenantId}/${errand.folder}`;
}

/** After a form: 303, never 307, so that the browser sends the form no further (FAPI 2.0 section 5.3.2.2). */
export function seeOther(location: string, cookie: string | undefined): Reply {
  return redirect(303, location, cookie);
}

/** Where nothing was posted. */
export function found(location: string, cookie: string | undefined): Reply {
  return redirect(302, location, cookie);
}

function redirect(status: 302 | 303, location: string, cookie: string | undefined): Reply {
  const headers = { Location: location, ...(cookie !== undefined && { 'Set-Cookie': cookie }) };
  return { status, empty: true, headers };
}
