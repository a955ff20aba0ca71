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

/** Characters by which an address is another one for whom does not mend it as browsers do. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is looked for
const MENDED = /[\u0000-\u001f\u007f\\]|^\s|\s$/;

/**
 * An http or https address with characters that a URI has not, such as those of other languages, as a browser sends it: encoded.
 * All other texts are returned as they are.
 */
export function normalWebAddress(text: string): string {
  if (isUri(text) || !WEB.test(text) || MENDED.test(text)) return text;
  return URL.parse(text)?.href ?? text;
}

/** An address that was taken by an earlier release, for those who read URIs strictly: everything else is encoded. */
export function escapedUri(address: string): string {
  if (isUri(address)) return address;
  const [before = '', ...fragment] = address.replaceAll(/%(?![0-9A-Fa-f]{2})/g, '%25').split('#');
  const encode = (text: string) =>
    text.replaceAll(/[^A-Za-z0-9\-._~!$&'()*+,;=:@/?%]+/gu, (others) => encodeURIComponent(others));
  const [, start = '', rest = ''] = /^([^:]+:\/\/[^/?#]*)?(.*)$/s.exec(before) ?? [];
  return start + encode(rest) + (fragment.length === 0 ? '' : `#${encode(fragment.join('%23'))}`);
}
