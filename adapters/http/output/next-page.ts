/**
 * `Link` header to the next page (RFC 8288), with the query of this page.
 * @param cursor start of the next page; undefined on the last one.
 */
export function nextPage(address: string, query: object, cursor: string | undefined): Readonly<Record<string, string>> {
  if (cursor === undefined) return {};
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries<unknown>({ ...query, cursor })) {
    if (value === undefined) continue;
    parameters.set(name, value instanceof Date ? value.toISOString() : String(value));
  }
  return { Link: `<${address}?${parameters}>; rel="next"` };
}
