import { z } from 'zod';
import { REDIRECT_PATTERN, SCHEMES_OF_WALLETS } from './address-patterns.ts';
import { normalUri } from './uri.ts';

/** Characters of a URI (RFC 3986 section 2); programs interpret other characters differently. */
const URI_TEXT = /^[A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=%]{1,2048}$/;

const WALLETS: ReadonlySet<string> = new Set(SCHEMES_OF_WALLETS.map((scheme) => `${scheme}:`));

const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', '[::1]', 'localhost']);

/**
 * True for an allowed redirect target: https, or a private scheme (FAPI 2.0 section 5.3.2.2); http only to the device itself (RFC 8252
 * section 7.3). A private scheme must be a domain name in reverse (RFC 8252 section 7.1), or a known short scheme of wallets: other schemes
 * open browsers and system programs, which an attacker could redirect further.
 */
export function isRedirectAddress(text: string): boolean {
  // RFC 6749 section 3.1.2: absolute, without fragment
  if (!URI_TEXT.test(text) || text.includes('#') || !URL.canParse(text)) return false;
  const { protocol, hostname, username, password } = new URL(text);
  if (username !== '' || password !== '') return false;
  if (protocol === 'https:') return hasUnambiguousHost(text);
  if (protocol === 'http:') return hasUnambiguousHost(text) && LOOPBACK.has(hostname);
  return isSchemeOfApp(protocol);
}

/** @param protocol with its colon, in lower case. */
export function isSchemeOfApp(protocol: string): boolean {
  return WALLETS.has(protocol) || /^[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+:$/.test(protocol);
}

/**
 * True if the host in an http address is the one that a browser visits. Browsers repair invalid addresses (`https:evil.example`,
 * `https://0x7f.1`), so that users and programs would see another host, or none.
 */
function hasUnambiguousHost(text: string): boolean {
  const [, authority] = /^https?:\/\/([^/?#]+)/i.exec(text) ?? [];
  const { protocol, host } = new URL(text);
  const writtenAuthority = authority?.toLowerCase();
  return writtenAuthority === host || writtenAuthority === `${host}:${protocol === 'https:' ? 443 : 80}`;
}

/** Stored unchanged if valid, because requests are compared with it exactly. */
export const RedirectAddress = z
  .string()
  .overwrite((text) => (isRedirectAddress(text) ? text : normalUri(text)))
  .max(2048)
  .refine(
    isRedirectAddress,
    'an https address, a private scheme with a dot such as com.example.wallet:, or a known scheme of wallets; without fragment',
  )
  .meta({ pattern: REDIRECT_PATTERN });
