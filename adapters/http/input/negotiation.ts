type Preference = { readonly value: string; readonly quality: number };

/** Longer lists are not preferences of a real client. */
const MAX_LENGTH = 2_000;
const MAX_ENTRIES = 50;
/** RFC 9110 section 12.4.2 */
const QUALITY = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

/**
 * Sorts media types by the preference of a client (RFC 9110 sections 12.4.2, 12.5.1). The most specific range that matches a type gives its
 * weight. Among types of equal weight, the more specific match comes first, then the earlier range, then the type that is offered first.
 * @param accept a client without this header accepts everything.
 * @param offered the available types, in lower case; a resource may have several names, the first of which is sent.
 */
export function acceptedTypes<Offer extends { readonly names: readonly string[] }>(
  accept: string | undefined,
  offered: readonly Offer[],
): readonly Offer[] {
  if (accept === undefined || accept.trim() === '') return offered;
  const preferences = parsePreferences(accept);
  return offered
    .map((offer) => ({ offer, match: bestMatch(offer.names, preferences) }))
    .filter(({ match }) => match.quality > 0)
    .sort(({ match: a }, { match: b }) => b.quality - a.quality || a.vagueness - b.vagueness || a.position - b.position)
    .map(({ offer }) => offer);
}

type Match = { readonly quality: number; readonly vagueness: number; readonly position: number };

function bestMatch(names: readonly string[], preferences: readonly Preference[]): Match {
  const type = names[0]?.split('/')[0];
  const ranges = [...names, `${type}/*`, '*/*'];
  for (const [vagueness, range] of ranges.entries()) {
    const place = preferences.findIndex(({ value }) => value === range);
    const quality = preferences[place]?.quality;
    if (quality !== undefined) return { quality, vagueness, position: place };
  }
  return { quality: 0, vagueness: ranges.length, position: preferences.length };
}

/** Returns true if the client prefers HTML to JSON, like browsers; without a preference JSON wins. */
export function prefersHtml(accept: string | undefined): boolean {
  const preferences = parsePreferences(accept);
  const qualityOf = (...ranges: readonly string[]) =>
    ranges.map((range) => preferences.find(({ value }) => value === range)?.quality).find((quality) => quality !== undefined) ?? 0;
  const html = preferences.find(({ value }) => value === 'text/html' || value === 'text/*')?.quality ?? 0;
  return html > 0 && html >= qualityOf('application/json', 'application/*', '*/*');
}

/** Ranges for every type. Clients of the JDK also write it as `*`. */
const ANY_TYPES = ['*/*', '*'];

/**
 * Returns true if a browser navigates to an address, so that a person reads the response. Browsers say so by `Sec-Fetch-Mode` and
 * `Sec-Fetch-Dest` (W3C Fetch Metadata sections 2.1 and 2.3). Without them, a client counts as a browser if it accepts HTML and not
 * everything: programs on the JDK accept `text/html` and everything else by default.
 */
export function isNavigation(headers: {
  readonly accept?: string | undefined;
  readonly 'sec-fetch-mode'?: unknown;
  readonly 'sec-fetch-dest'?: unknown;
}): boolean {
  const { accept, 'sec-fetch-mode': mode, 'sec-fetch-dest': destination } = headers;
  if (!prefersHtml(accept)) return false;
  // HTTP libraries may append a value of their own to the header that a program sets.
  const modes = String(mode ?? '')
    .split(',')
    .map((part) => part.trim());
  // The fetch of Node 20 overwrites the mode and leaves the destination, which no script in a browser can set.
  if (modes.includes('navigate') || destination === 'document') return true;
  return !parsePreferences(accept).some(({ value }) => ANY_TYPES.includes(value));
}

/** Language ranges in the order of preference (RFC 9110 section 12.5.4), without rejected ones. */
export function languageRanges(acceptLanguage: string | undefined): readonly string[] {
  return parsePreferences(acceptLanguage)
    .filter(({ quality }) => quality > 0)
    .sort((a, b) => b.quality - a.quality)
    .map(({ value }) => value);
}

/** Supported content encodings, the one with the smallest result first. */
const ENCODINGS = ['br', 'gzip'] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** @returns the preferred content encoding (RFC 9110 section 12.5.3); undefined for none. */
export function pickEncoding(acceptEncoding: string | undefined): Encoding | undefined {
  const preferences = parsePreferences(acceptEncoding);
  const weightOf = (...names: readonly string[]) => preferences.find(({ value }) => names.includes(value))?.quality;
  const otherWeight = weightOf('*') ?? 0;
  const weights = { br: weightOf('br') ?? otherWeight, gzip: weightOf('gzip', 'x-gzip') ?? otherWeight };
  const [best = 'gzip'] = ENCODINGS.toSorted((a, b) => weights[b] - weights[a]);
  const plain = weightOf('identity') ?? 0;
  return weights[best] > 0 && weights[best] >= plain ? best : undefined;
}

/** Parses the entries in their order, in lower case; parameters other than the weight are dropped. */
function parsePreferences(header: string | undefined): Preference[] {
  if (header === undefined || header.length > MAX_LENGTH) return [];
  return header
    .split(',', MAX_ENTRIES)
    .map((entry) => {
      const [value = '', ...parameters] = entry.split(';').map((part) => part.trim().toLowerCase());
      const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
      const quality = weight === undefined ? 1 : QUALITY.test(weight) ? Number(weight) : 0;
      return { value, quality };
    })
    .filter(({ value }) => value !== '');
}

/** Compares a list of tags weakly (RFC 9110 section 13.1.2), because proxies that compress weaken the tags that they forward. */
export function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  const tags = (ifNoneMatch ?? '').split(',').map((entry) => entry.trim().replace(/^W\//, ''));
  return tags.includes(etag) || tags.includes('*');
}
