/** Characters of a URI (RFC 3986 section 2) that separate nothing but members of a path or a query. */
const CHARACTER = "(?:[A-Za-z0-9\\-._~!$&'()*+,;=:@/?]|%[0-9A-Fa-f]{2})";
const SCHEME = '[A-Za-z][A-Za-z0-9+.-]*';
/** An address in brackets (RFC 3986 section 3.2.2), with who asks before it and the port behind. */
const BRACKETED = `//(?:${CHARACTER}*@)?\\[[0-9A-Fa-f:.]+\\]`;
const REST = `(?:${BRACKETED})?${CHARACTER}*(?:#${CHARACTER}*)?`;

/** With a scheme, and something behind it: `urn:` alone is none for the libraries that read URIs strictly. */
const URI = new RegExp(`^${SCHEME}:(?=[^#])${REST}$`);
/** Also a relative one, whose first part has no colon (RFC 3986 section 4.2). */
const REFERENCE = new RegExp(`^(?:${SCHEME}:(?=[^#])|(?![^/?#]*:))${REST}$`);
const WEB = /^https?:\/\/[^/?#]/i;

/** RFC 3986 section 3. What is none is refused, or makes them fail, by libraries that read URIs strictly. */
export function isUri(text: string): boolean {
  return URI.test(text) && (!/^https?:/i.test(text) || WEB.test(text));
}

/** RFC 3986 section 4.1 */
export function isUriReference(text: string): boolean {
  return text !== '' && REFERENCE.test(text);
}

/** Control characters inside of an address: programs drop or encode them in different ways. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the expression finds them
const CONTROL = /[\u0000-\u001f\u007f]/;

/**
 * The form in which an address is stored: a URI stays as it is, letter by letter. Anything else that `URL` can parse is percent-encoded,
 * hosts in other scripts become A-labels, and white space around it is removed.
 * @returns texts that are no address as they are.
 */
export function normalUri(text: string): string {
  const trimmed = text.trim();
  if (isUri(trimmed)) return trimmed;
  const url = CONTROL.test(trimmed) ? null : URL.parse(trimmed);
  if (url === null) return text;
  const address = escapedUri(url.href);
  // An issuer without a path has no slash at its end (RFC 8414 section 2), also after its host was encoded.
  const isBare = /^[a-z]+:[/\\]*[^/\\?#]*$/i.test(trimmed) && url.pathname === '/';
  return isBare ? address.slice(0, -1) : address;
}

/** An address with everything encoded that is no character of a URI, for programs that read URIs strictly. */
export function escapedUri(address: string): string {
  if (isUri(address)) return address;
  const [before = '', ...fragment] = address.replaceAll(/%(?![0-9A-Fa-f]{2})/g, '%25').split('#');
  const encode = (text: string) => text.replaceAll(/[^A-Za-z0-9\-._~!$&'()*+,;=:@/?%]+/gu, (others) => encodeURIComponent(others));
  const [, start = '', rest = ''] = /^([^:]+:\/\/[^/?#]*)?(.*)$/s.exec(before) ?? [];
  return start + encode(rest) + (fragment.length === 0 ? '' : `#${encode(fragment.join('%23'))}`);
}

/** Stands for a placeholder meanwhile: in lower case, so that it stays as it is in a host, too. */
const STAND_IN = 'stand-in-of-the-placeholder';

/** Changes an address and leaves the placeholder in it, such as `{sessionId}`, as it is. */
export function aroundPlaceholder(placeholder: string, text: string, change: (address: string) => string): string {
  if (text.includes(STAND_IN)) return change(text);
  return change(text.replaceAll(placeholder, STAND_IN)).replaceAll(STAND_IN, placeholder);
}
