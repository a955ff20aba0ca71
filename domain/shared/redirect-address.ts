import { z } from 'zod';
import { REDIRECT_PATTERN, SCHEMES_OF_WALLETS } from './address-patterns.ts';
import { normalUri } from './uri.ts';

/** Characters of a URI (RFC 3986 section 2); whatever else there is, programs read in different ways. */
const URI_TEXT = /^[A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=%]{1,2048}$/;

const WALLETS: ReadonlySet<string> = new Set(SCHEMES_OF_WALLETS.map((scheme) => `${scheme}:`));

const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', '[::1]', 'localhost']);

/**
 * Whether a browser may be sent there: https, or a private scheme (FAPI 2.0 section 5.3.2.2); plain http only to the device
 * itself (RFC 8252 section 7.3). A private scheme is a domain name in reverse, as RFC 8252 section 7.1 wants it, or one of
 * the short names of wallets: others open browsers and programs of the system, which then go where the rest says.
 */
export function isRedirectAddress(text: string): boolean {
  // RFC 6749 section 3.1.2: absolute, without fragment
  if (!URI_TEXT.test(text) || text.includes('#') || !URL.canParse(text)) return false;
  const { protocol, hostname, username, password } = new URL(text);
  if (username !== '' || password !== '') return false;
  if (protocol === 'https:') return namesItsHost(text);
  if (protocol === 'http:') return namesItsHost(text) && LOOPBACK.has(hostname);
  return isSchemeOfApp(protocol);
}

/** @param protocol with its colon, in lower case. */
export function isSchemeOfApp(protocol: string): boolean {
  return WALLETS.has(protocol) || /^[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+:$/.test(protocol);
}

/**
 * Whether the host that stands in an http address is the one that a browser goes to. Browsers mend what is no such
 * address (`https:evil.example`, `https://0x7f.1`), so that people and programs that read it see another host, or none.
 */
function namesItsHost(text: string): boolean {
  const [, authority] = /^https?:\/\/([^/?#]+)/i.exec(text) ?? [];
  const { protocol, host } = new URL(text);
  const written = authority?.toLowerCase();
  return written === host || written === `${host}:${protocol === 'https:' ? 443 : 80}`;
}

/** Kept letter by letter where wallets can send it so, since requests are compared with it letter by letter. */
export const RedirectAddress = z
  .string()
  .overwrite((text) => (isRedirectAddress(text) ? text : normalUri(text)))
  .max(2048)
  .refine(
    isRedirectAddress,
    'an https address, a private scheme with a dot such as com.example.wallet:, or a known scheme of wallets; without fragment',
  )
  .meta({ pattern: REDIRECT_PATTERN });
