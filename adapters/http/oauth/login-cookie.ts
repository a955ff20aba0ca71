import type { ServiceSettings } from '../../../application/ports/settings.ts';

/** One cookie per login, so that several in one browser do not meet; its name carries the id of the authorization. */
const NAME = 'vidimus-login-';

type Place = { readonly settings: ServiceSettings; readonly tenantId: string };

/**
 * A `Set-Cookie` value that binds a login to the browser that started it. It comes back from the upstream provider by a
 * link, for which `SameSite=Lax` is as strict as it can be.
 */
export function loginCookie(
  place: Place,
  login: { readonly authorizationId: string; readonly browserSecret: string; readonly seconds: number },
): string {
  const { publicUrl } = place.settings;
  const path = `${new URL(publicUrl).pathname.replace(/\/$/, '')}/${place.tenantId}/chained-as`;
  return [
    `${nameAt(place)}${login.authorizationId}=${login.browserSecret}`,
    `Path=${path}`,
    `Max-Age=${login.seconds}`,
    'HttpOnly',
    'SameSite=Lax',
    ...(isSecure(place) ? ['Secure'] : []),
  ].join('; ');
}

/** A `Set-Cookie` value that takes the cookie of a finished login away. */
export function spentLoginCookie(place: Place, authorizationId: string): string {
  return loginCookie(place, { authorizationId, browserSecret: '', seconds: 0 });
}

/** What a browser kept, by the id of the authorization. @param header the `Cookie` header. */
export function readLoginCookies(place: Place, header: string | undefined): ReadonlyMap<string, string> {
  const name = nameAt(place);
  const kept = new Map<string, string>();
  for (const pair of (header ?? '').split(';')) {
    const [given = '', value = ''] = pair.trim().split('=', 2);
    if (given.startsWith(name)) kept.set(given.slice(name.length), value);
  }
  return kept;
}

function isSecure({ settings }: Place): boolean {
  return settings.publicUrl.startsWith('https:');
}

/** RFC 6265bis section 4.1.3.1: nobody on an insecure connection can plant a cookie of this name. */
function nameAt(place: Place): string {
  return isSecure(place) ? `__Secure-${NAME}` : NAME;
}
