import { isJsonObject, type Json, type JsonObject } from '../shared/json.ts';

/**
 * The languages of each `display` list, once per distinct list. The metadata for two readers are equal when `pickLocale` returns the same
 * language of each list.
 */
export function localeListsOf(metadata: JsonObject): readonly (readonly string[])[] {
  const lists = new Map<string, readonly string[]>();
  visitDisplays(metadata, (entries) => {
    const locales = localesIn(entries);
    lists.set(locales.join(), locales);
    return entries;
  });
  return [...lists.values()];
}

/**
 * The language of one list for the reader (RFC 4647 section 3.4: lookup; a bare language also matches its regions).
 * @param ranges preferences of the reader, best first; `*` ends the list, because it matches everything.
 * @returns undefined when the reader gets all languages of the list.
 */
export function pickLocale(locales: readonly string[], ranges: readonly string[]): string | undefined {
  for (const range of ranges) {
    if (range === '*') return undefined;
    const requestedLocale = range.toLowerCase();
    for (let prefix = requestedLocale; prefix !== ''; prefix = prefix.slice(0, Math.max(0, prefix.lastIndexOf('-')))) {
      const exact = locales.find((locale) => locale.toLowerCase() === prefix);
      if (exact !== undefined) return exact;
    }
    const regional = locales.find((locale) => locale.toLowerCase().startsWith(`${requestedLocale}-`));
    if (regional !== undefined) return regional;
  }
  return undefined;
}

/** Reduces each `display` list to one language; a list without a match keeps all of its languages. */
export function narrowTo(metadata: JsonObject, ranges: readonly string[]): JsonObject {
  return visitDisplays(metadata, (entries) => {
    const locale = pickLocale(localesIn(entries), ranges);
    return locale === undefined ? entries : entries.filter((entry) => localeOf(entry) === locale);
  }) as JsonObject;
}

/** The only language of all `display` lists, for `Content-Language`; undefined when there are several, or none. */
export function onlyLocaleOf(metadata: JsonObject): string | undefined {
  const locales = new Set(localeListsOf(metadata).flat());
  const [locale] = locales;
  return locales.size === 1 ? locale : undefined;
}

type Entries = readonly Json[];

/** Applies `change` to every array called `display` at any depth. */
function visitDisplays(value: Json, change: (entries: Entries) => Entries): Json {
  if (Array.isArray(value)) return (value as Entries).map((member) => visitDisplays(member, change));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      name === 'display' && Array.isArray(member) ? change(member as Entries) : visitDisplays(member, change),
    ]),
  );
}

function localesIn(entries: Entries): readonly string[] {
  return [...new Set(entries.map(localeOf).filter((locale) => locale !== undefined))];
}

function localeOf(entry: Json): string | undefined {
  const locale = isJsonObject(entry) ? entry['locale'] : undefined;
  return typeof locale === 'string' ? locale : undefined;
}
