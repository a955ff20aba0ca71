import { signal } from '@preact/signals';

export type ConsoleAddress = { readonly page: string; readonly id: string; readonly query: URLSearchParams };

export const place = signal<ConsoleAddress>(read());

addEventListener('hashchange', reread);

/** The address was changed without a step in the history. */
export function reread(): void {
  place.value = read();
}

function read(): ConsoleAddress {
  const [path = '', query = ''] = location.hash.slice(1).split('?', 2);
  const [page = '', ...rest] = path.split('/');
  return { page, id: decode(rest.join('/')), query: new URLSearchParams(query) };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The page that stands there in place of one that this client may not see: the address says so, without a step in the history. */
export function settle(asked: string, page: string): void {
  if (read().page !== asked || place.value.page !== asked) return;
  history.replaceState(null, '', linkTo(page));
  reread();
}

/** The address of a place, for `href`: whole, since a bare `#…` is taken for a place within this page. */
export function linkTo(page: string, id = '', query: Readonly<Record<string, string>> = {}): string {
  return `${location.pathname}${hashOf(page, id, query)}`;
}

function hashOf(page: string, id = '', query: Readonly<Record<string, string>> = {}): string {
  const asked = new URLSearchParams(query).toString();
  return `#${page}${id === '' ? '' : `/${encodeURIComponent(id)}`}${asked === '' ? '' : `?${asked}`}`;
}

export function goTo(page: string, id = '', query: Readonly<Record<string, string>> = {}): void {
  location.hash = hashOf(page, id, query);
}

/** Changes what the page is asked for, without a step in the history. */
export function refine(changes: Readonly<Record<string, string | undefined>>): void {
  const { page, id, query } = place.value;
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === '') next.delete(name);
    else next.set(name, value);
  }
  history.replaceState(null, '', linkTo(page, id, Object.fromEntries(next)));
  place.value = { page, id, query: next };
}

/** Takes a member out of the address, so that it is not left in the history. */
export function takeFromAddress(name: string): string | undefined {
  const found = place.value.query.get(name) ?? undefined;
  if (found !== undefined) refine({ [name]: undefined });
  return found;
}
