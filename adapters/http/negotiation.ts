type Preference = { readonly value: string; readonly quality: number };

/** Longer lists than this are nobody's preferences. */
const MAX_LENGTH = 2_000;
const MAX_ENTRIES = 50;
/** RFC 9110 section 12.4.2 */
const QUALITY = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

/**
 * Whether a reader would rather have `application/jwt` than JSON (RFC 9110 section 12.5.1). Only one that names it
 * knows what to do with it; where both are welcome alike, the one that stands first.
 */
export function prefersJwt(accept: string | undefined): boolean {
  const preferences = readPreferences(accept);
  const jwt = preferences.find(({ value }) => value === 'application/jwt');
  if (jwt === undefined || jwt.quality === 0) return false;
  const json = ['application/json', 'application/*', '*/*']
    .map((range) => preferences.find(({ value }) => value === range))
    .find((preference) => preference !== undefined);
  if (json === undefined || jwt.quality > json.quality) return true;
  return jwt.quality === json.quality && preferences.indexOf(jwt) < preferences.indexOf(json);
}

/** Whether a reader would rather have HTML than JSON, as browsers say; who says nothing gets JSON. */
export function prefersHtml(accept: string | undefined): boolean {
  const preferences = readPreferences(accept);
  const qualityOf = (...ranges: readonly string[]) =>
    ranges
      .map((range) => preferences.find(({ value }) => value === range)?.quality)
      .find((found) => found !== undefined) ?? 0;
  const html = preferences.find(({ value }) => value === 'text/html' || value === 'text/*')?.quality ?? 0;
  return html > 0 && html >= qualityOf('application/json', 'application/*', '*/*');
}

/** Whether a reader takes any of these media types (RFC 9110 section 12.5.1); ranges are named like types. */
export function accepts(accept: string, types: readonly string[]): boolean {
  return readPreferences(accept).some(({ value, quality }) => quality > 0 && types.includes(value));
}

/** Language ranges in the order of preference (RFC 9110 section 12.5.4), without those that are unwelcome. */
export function languageRanges(acceptLanguage: string | undefined): readonly string[] {
  return readPreferences(acceptLanguage)
    .filter(({ quality }) => quality > 0)
    .sort((one, other) => other.quality - one.quality)
    .map(({ value }) => value);
}

/** Whether a reader takes gzip (RFC 9110 section 12.5.3). */
export function takesGzip(acceptEncoding: string | undefined): boolean {
  const preferences = readPreferences(acceptEncoding);
  const named =
    preferences.find(({ value }) => value === 'gzip') ?? preferences.find(({ value }) => value === '*');
  return named !== undefined && named.quality > 0;
}

/** In the order in which they stand, in lower case; parameters besides the weight are left away. */
function readPreferences(header: string | undefined): Preference[] {
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
