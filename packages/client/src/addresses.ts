type Values = Readonly<Record<string, unknown>> | undefined;

/** @throws TypeError for a path parameter that would change the path. */
export function addressOf(url: string, path: string, { path: values, query }: { readonly path?: Values; readonly query?: Values }): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => segment(name, values?.[name]));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const entry of [value].flat()) if (entry !== undefined && entry !== null) search.append(name, String(entry));
  }
  const text = search.toString();
  return `${url}${filled}${text === '' ? '' : `?${text}`}`;
}

/** `../../..` is not changed by encoding and would lead to another address. */
function segment(name: string, value: unknown): string {
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text !== 'string' || /^\.{0,2}$/.test(text)) throw new TypeError(`path.${name} is not a valid id`);
  return encodeURIComponent(text);
}

/** Parameters of the next page (RFC 8288), if there is one. */
export function nextPage(headers: Headers): Readonly<Record<string, string>> | undefined {
  const [, address] = /<([^>]*)>\s*;\s*rel="next"/.exec(headers.get('link') ?? '') ?? [];
  return address === undefined ? undefined : Object.fromEntries(new URL(address).searchParams);
}
