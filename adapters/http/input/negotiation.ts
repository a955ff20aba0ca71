type Preference = { readonly value: string; readonly quality: number };

/** Longer lists than this are nobody's preferences. */
const MAX_LENGTH = 2_000;
const MAX_ENTRIES = 50;
/** RFC 9110 section 12.4.2 */
const QUALITY = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

/**
 * The media types that a reader takes, best first (RFC 9110 sections 12.4.2, 12.5.1). The range that names a type most
 * precisely says its weight; of types of one weight that comes first which is named more precisely, then the one whose range
 * stands first, then the one that is offered first.
 * @param accept a reader that says nothing takes everything.
 * @param offered what there is, in lower case; one thing may have several names, the one that it is sent by first.
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
    .sort(({ match: one }, { match: other }) => other.quality - one.quality || one.vagueness - other.vagueness || one.place - other.place)
    .map(({ offer }) => offer);
}

type Match = { readonly quality: number; readonly vagueness: number; readonly place: number };

function bestMatch(names: readonly string[], preferences: readonly Preference[]): Match {
  const type = names[0]?.split('/')[0];
  const ranges = [...names, `${type}/*`, '*/*'];
  for (const [vagueness, range] of ranges.entries()) {
    const place = preferences.findIndex(({ value }) => value === range);
    const quality = preferences[place]?.quality;
    if (quality !== undefined) return { quality, vagueness, place };
  }
  return { quality: 0, vagueness: ranges.length, place: preferences.length };
}

/** Whether a reader would rather have HTML than JSON, as browsers say; who says nothing gets JSON. */
export function prefersHtml(accept: string | undefined): boolean {
  const preferences = parsePreferences(accept);
  const qualityOf = (...ranges: readonly string[]) =>
    ranges.map((range) => preferences.find(({ value }) => value === range)?.quality).find((found) => found !== undefined) ?? 0;
  const html = preferences.find(({ value }) => value === 'text/html' || value === 'text/*')?.quality ?? 0;
  return html > 0 && html >= qualityOf('application/json', 'application/*', '*/*');
}

/** A range for every type. Clients of the JDK write it as `*`, too. */
const ANY_TYPES = ['*/*', '*'];

/**
 * Whether a browser navigates to an address, so that a person reads the answer. Browsers say so by `Sec-Fetch-Mode` and
 * `Sec-Fetch-Dest` (W3C Fetch Metadata sections 2.1 and 2.3). Without them a client counts if it accepts HTML and
 * not everything: programs on the JDK accept `text/html` and everything else unless they are told otherwise.
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
    .map((each) => each.trim());
  // The fetch of Node 20 overwrites the mode and leaves the destination, which no script in a browser can set.
  if (modes.includes('navigate') || destination === 'document') return true;
  return !parsePreferences(accept).some(({ value }) => ANY_TYPES.includes(value));
}

/** Language ranges in the order of preference (RFC 9110 section 12.5.4), without those that are unwelcome. */
export function languageRanges(acceptLanguage: string | undefined): readonly string[] {
  return parsePreferences(acceptLanguage)
    .filter(({ quality }) => quality > 0)
    .sort((one, other) => other.quality - one.quality)
    .map(({ value }) => value);
}

/** Ways to compress an answer, the one that makes it smallest first. */
const ENCODINGS = ['br', 'gzip'] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** @returns how a reader takes an answer best (RFC 9110 section 12.5.3); undefined for as it is. */
export function pickEncoding(acceptEncoding: string | undefined): Encoding | undefined {
  const preferences = parsePreferences(acceptEncoding);
  const weightOf = (...names: readonly string[]) => preferences.find(({ value }) => names.includes(value))?.quality;
  const rest = weightOf('*') ?? 0;
  const weights = { br: weightOf('br') ?? rest, gzip: weightOf('gzip', 'x-gzip') ?? rest };
  const [best = 'gzip'] = ENCODINGS.toSorted((one, other) => weights[other] - weights[one]);
  const plain = weightOf('identity') ?? 0;
  return weights[best] > 0 && weights[best] >= plain ? best : undefined;
}

/** In the order in which they stand, in lower case; parameters besides the weight are left away. */
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

/** RFC 9110 section 13.1.2: a list, compared weakly, since proxies that compress weaken what they pass on. */
export function isKnown(ifNoneMatch: string | undefined, etag: string): boolean {
  const known = (ifNoneMatch ?? '').split(',').map((entry) => entry.trim().replace(/^W\//, ''));
  return known.includes(etag) || known.includes('*');
}
