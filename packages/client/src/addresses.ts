type Values = Readonly<Record<string, unknown>> | undefined;

/** @throws TypeError for a part of the path that would lead somewhere else. */
export function addressOf(url: string, path: string, { path: values, query }: { readonly path?: Values; readonly query?: Values }): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => segment(name, values?.[name]));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const one of [value].flat()) if (one !== undefined && one !== null) search.append(name, String(one));
  }
  const text = search.toString();
  return `${url}${filled}${text === '' ? '' : `?${text}`}`;
}

/** `../../..` stays as it is in every encoding, and an address with it is another one. */
function segment(name: string, value: unknown): string {
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text !== 'string' || /^\.{0,2}$/.test(text)) throw new TypeError(`path.${name} is no id`);
  return encodeURIComponent(text);
}

/** The parameters of the next page (RFC 8288), if there is one. */
export function nextPage(headers: Headers): Readonly<Record<string, string>> | undefined {
  const [, address] = /<([^>]*)>\s*;\s*rel="next"/.exec(headers.get('link') ?? '') ?? [];
  return address === undefined ? undefined : Object.fromEntries(new URL(address).searchParams);
}
