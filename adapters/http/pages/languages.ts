import { pickLocale } from '../../../domain/issuance/localized-metadata.ts';
import { languageRanges } from '../input/negotiation.ts';
import bg from './texts/bg.json' with { type: 'json' };
import cs from './texts/cs.json' with { type: 'json' };
import da from './texts/da.json' with { type: 'json' };
import de from './texts/de.json' with { type: 'json' };
import el from './texts/el.json' with { type: 'json' };
import en from './texts/en.json' with { type: 'json' };
import es from './texts/es.json' with { type: 'json' };
import et from './texts/et.json' with { type: 'json' };
import fi from './texts/fi.json' with { type: 'json' };
import fr from './texts/fr.json' with { type: 'json' };
import ga from './texts/ga.json' with { type: 'json' };
import hr from './texts/hr.json' with { type: 'json' };
import hu from './texts/hu.json' with { type: 'json' };
import it from './texts/it.json' with { type: 'json' };
import lt from './texts/lt.json' with { type: 'json' };
import lv from './texts/lv.json' with { type: 'json' };
import mt from './texts/mt.json' with { type: 'json' };
import nl from './texts/nl.json' with { type: 'json' };
import pl from './texts/pl.json' with { type: 'json' };
import pt from './texts/pt.json' with { type: 'json' };
import ro from './texts/ro.json' with { type: 'json' };
import sk from './texts/sk.json' with { type: 'json' };
import sl from './texts/sl.json' with { type: 'json' };
import sv from './texts/sv.json' with { type: 'json' };

/** Texts of the pages in one language. Placeholders are in braces and have the same names in all languages. A missing text does not compile. */
export type Texts = Readonly<Record<keyof typeof en, string>>;

/** The official languages of the European Union (Regulation No 1 of 1958, article 1), by their codes of ISO 639-1. */
export const TEXTS = {
  bg,
  cs,
  da,
  de,
  el,
  en,
  es,
  et,
  fi,
  fr,
  ga,
  hr,
  hu,
  it,
  lt,
  lv,
  mt,
  nl,
  pl,
  pt,
  ro,
  sk,
  sl,
  sv,
} as const satisfies Readonly<Record<string, Texts>>;
export type Language = keyof typeof TEXTS;

const LANGUAGES = Object.keys(TEXTS) as readonly Language[];

/** Query parameter with the language of a page, for forms and links between pages. */
export const LANGUAGE_PARAMETER = 'lang';
const MAX_ADDRESS = 8_192;
const TAG = /^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,4}$/;

type LanguageRequest = { readonly url?: string | undefined; readonly headers: { readonly 'accept-language'?: string | undefined } };

/** Languages that the reader prefers, best first: the one in the address, then those of the browser. */
export function preferredLanguages({ url = '', headers }: LanguageRequest): readonly string[] {
  const chosen =
    url.length > MAX_ADDRESS || !url.includes(LANGUAGE_PARAMETER)
      ? undefined
      : URL.parse(url, 'http://here.invalid')?.searchParams.get(LANGUAGE_PARAMETER);
  const ranges = languageRanges(headers['accept-language']);
  return typeof chosen === 'string' && TAG.test(chosen) ? [chosen, ...ranges] : ranges;
}

/** @param fallback languages of the tenant, for readers without a supported language; English if none of these is supported either. */
export function chooseLanguage(preferred: readonly string[], fallback: readonly string[] = []): Language {
  return (pickLocale(LANGUAGES, preferred) ?? pickLocale(LANGUAGES, fallback) ?? 'en') as Language;
}

/**
 * The entry of a `display` to show (OpenID4VCI 1.0 section 12.2.4): one in a preferred language, otherwise the one without a language,
 * otherwise the first one.
 */
export function displayFor<T extends { readonly locale?: string | undefined }>(
  entries: readonly T[],
  languages: readonly string[],
): T | undefined {
  const locales = entries.flatMap(({ locale }) => locale ?? []);
  const picked = pickLocale(locales, languages);
  const inLanguage = picked === undefined ? undefined : entries.find(({ locale }) => locale === picked);
  return inLanguage ?? entries.find(({ locale }) => locale === undefined) ?? entries[0];
}
