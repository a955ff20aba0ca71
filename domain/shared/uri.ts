/** Characters of a URI (RFC 3986 section 2), without delimiters of its components. */
const CHARACTER = "(?:[A-Za-z0-9\\-._~!$&'()*+,;=:@/?]|%[0-9A-Fa-f]{2})";
const SCHEME = '[A-Za-z][A-Za-z0-9+.-]*';
/** An address in brackets (RFC 3986 section 3.2.2), with user info before it and the port after it. */
const BRACKETED = `//(?:${CHARACTER}*@)?\\[[0-9A-Fa-f:.]+\\]`;
const URI_REMAINDER = `(?:${BRACKETED})?${CHARACTER}*(?:#${CHARACTER}*)?`;

/** A scheme with a non-empty rest: strict URI libraries reject `urn:` alone. */
const URI = new RegExp(`^${SCHEME}:(?=[^#])${URI_REMAINDER}$`);
/** A URI or a relative reference, whose first segment has no colon (RFC 3986 section 4.2). */
const REFERENCE = new RegExp(`^(?:${SCHEME}:(?=[^#])|(?![^/?#]*:))${URI_REMAINDER}$`);
const WEB = /^https?:\/\/[^/?#]/i;

/** RFC 3986 section 3. Strict URI libraries reject other texts, or fail on them. */
export function isUri(text: string): boolean {
  return URI.test(text) && (!/^https?:/i.test(text) || WEB.test(text));
}

/** RFC 3986 section 4.1 */
export function isUriReference(text: string): boolean {
  return text !== '' && REFERENCE.test(text);
}

/** Control characters inside of an address: programs drop or encode them differently. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the expression finds them
const CONTROL = /[\u0000-\u001f\u007f]/;

/**
 * Normalizes an address for storage: a valid URI is unchanged. Other texts that `URL` can parse are percent-encoded, hosts in other scripts
 * become A-labels, and surrounding white space is removed.
 * @returns texts that are no address unchanged.
 */
export function normalUri(text: string): string {
  const trimmed = text.trim();
  if (isUri(trimmed)) return trimmed;
  const url = CONTROL.test(trimmed) ? null : URL.parse(trimmed);
  if (url === null) return text;
  const address = escapedUri(url.href);
  // An issuer without a path has no trailing slash (RFC 8414 section 2), also after its host was encoded.
  const isBare = /^[a-z]+:[/\\]*[^/\\?#]*$/i.test(trimmed) && url.pathname === '/';
  return isBare ? address.slice(0, -1) : address;
}

/** Encodes all characters that are invalid in a URI, for strict URI libraries. */
export function escapedUri(address: string): string {
  if (isUri(address)) return address;
  const [beforeFragment = '', ...fragment] = address.replaceAll(/%(?![0-9A-Fa-f]{2})/g, '%25').split('#');
  const encode = (text: string) => text.replaceAll(/[^A-Za-z0-9\-._~!$&'()*+,;=:@/?%]+/gu, (characters) => encodeURIComponent(characters));
  const [, start = '', remainder = ''] = /^([^:]+:\/\/[^/?#]*)?(.*)$/s.exec(beforeFragment) ?? [];
  return start + encode(remainder) + (fragment.length === 0 ? '' : `#${encode(fragment.join('%23'))}`);
}

/** Substitute for the placeholder during normalization: in lower case, so that it is stable within a host. */
const PLACEHOLDER_SUBSTITUTE = 'stand-in-of-the-placeholder';

/** Applies a change to an address without its placeholder, such as `{sessionId}`. */
export function withPlaceholder(placeholder: string, text: string, change: (address: string) => string): string {
  if (text.includes(PLACEHOLDER_SUBSTITUTE)) return change(text);
  return change(text.replaceAll(placeholder, PLACEHOLDER_SUBSTITUTE)).replaceAll(PLACEHOLDER_SUBSTITUTE, placeholder);
}
