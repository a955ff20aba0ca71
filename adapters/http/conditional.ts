/** RFC 9110 section 13.1.2: a list, compared weakly, since proxies that compress weaken what they pass on. */
export function isKnown(ifNoneMatch: string | undefined, etag: string): boolean {
  const known = (ifNoneMatch ?? '').split(',').map((entry) => entry.trim().replace(/^W\//, ''));
  return known.includes(etag) || known.includes('*');
}
