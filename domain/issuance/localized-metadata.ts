import { isJsonObject, type Json, type JsonObject } from '../shared/json.ts';

/**
 * The languages of each `display` list, once per distinct list. Metadata that are narrowed for two readers are equal when
 * `pickLocale` picks the same of each.
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
 * The language of one list that the reader gets (RFC 4647 section 3.4: lookup; a bare language also finds its regions).
 * @param ranges what the reader prefers, best first; `*` ends the list, since anything will do.
 * @returns undefined when the reader gets all languages of the list.
 */
export function pickLocale(locales: readonly string[], ranges: readonly string[]): string | undefined {
  for (const range of ranges) {
    if (range === '*') return undefined;
    const wanted = range.toLowerCase();
    for (let prefix = wanted; prefix !== ''; prefix = prefix.slice(0, Math.max(0, prefix.lastIndexOf('-')))) {
      const exact = locales.find((locale) => locale.toLowerCase() === prefix);
      if (exact !== undefined) return exact;
    }
    const regional = locales.find((locale) => locale.toLowerCase().startsWith(`${wanted}-`));
    if (regional !== undefined) return regional;
  }
  return undefined;
}

/** The metadata with one language in each `display` list; a list without a match keeps all of its languages. */
export function narrowTo(metadata: JsonObject, ranges: readonly string[]): JsonObject {
  return visitDisplays(metadata, (entries) => {
    const locale = pickLocale(localesIn(entries), ranges);
    return locale === undefined ? entries : entries.filter((entry) => localeOf(entry) === locale);
  }) as JsonObject;
}

/** The only language of all `display` lists, for `Content-Language`; undefined when there are several, or none. */
export function onlyLocaleOf(metadata: JsonObject): string | undefined {
  const locales = new Set(localeListsOf(metadata).flat());
  const [only] = locales;
  return locales.size === 1 ? only : undefined;
}

type Entries = readonly Json[];

/** Applies `change` to every array called `display`, wherever it stands. */
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
