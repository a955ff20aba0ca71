import { isJsonObject, type Json, type JsonObject } from '../shared/json.ts';

/** Languages that any `display` of the metadata is written in, as they are written there. */
export function localesOf(metadata: JsonObject): readonly string[] {
  const locales = new Set<string>();
  visitDisplays(metadata, (entries) => {
    for (const entry of entries) {
      const locale = localeOf(entry);
      if (locale !== undefined) locales.add(locale);
    }
    return entries;
  });
  return [...locales];
}

/**
 * The language to answer in (RFC 4647 section 3.4: lookup; a bare language also finds its regions).
 * @param ranges what the reader prefers, best first; `*` ends the list, since anything will do.
 * @returns undefined when the reader gets all languages.
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

/** The metadata with displays of one language alone; a display that lacks it keeps all of its languages. */
export function narrowTo(metadata: JsonObject, locale: string): JsonObject {
  return visitDisplays(metadata, (entries) => {
    const chosen = entries.filter((entry) => localeOf(entry) === locale);
    return chosen.length > 0 ? chosen : entries;
  }) as JsonObject;
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

function localeOf(entry: Json): string | undefined {
  const locale = isJsonObject(entry) ? entry['locale'] : undefined;
  return typeof locale === 'string' ? locale : undefined;
}
