import { pickLocale } from '../../../domain/issuance/localized-metadata.ts';
import { languageRanges } from '../negotiation.ts';
import { bg } from './texts/bg.ts';
import { cs } from './texts/cs.ts';
import { da } from './texts/da.ts';
import { de } from './texts/de.ts';
import { el } from './texts/el.ts';
import { en } from './texts/en.ts';
import { es } from './texts/es.ts';
import { et } from './texts/et.ts';
import { fi } from './texts/fi.ts';
import { fr } from './texts/fr.ts';
import { ga } from './texts/ga.ts';
import { hr } from './texts/hr.ts';
import { hu } from './texts/hu.ts';
import { it } from './texts/it.ts';
import { lt } from './texts/lt.ts';
import { lv } from './texts/lv.ts';
import { mt } from './texts/mt.ts';
import { nl } from './texts/nl.ts';
import { pl } from './texts/pl.ts';
import { pt } from './texts/pt.ts';
import { ro } from './texts/ro.ts';
import { sk } from './texts/sk.ts';
import { sl } from './texts/sl.ts';
import { sv } from './texts/sv.ts';
import type { Texts } from './texts/texts.ts';

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

/** In what language a page of this service is asked for, by its address: for forms and links between pages. */
export const LANGUAGE_PARAMETER = 'lang';
const MAX_ADDRESS = 8_192;
const TAG = /^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,4}$/;

type Asking = {
  readonly url?: string | undefined;
  readonly headers: { readonly 'accept-language'?: string | undefined };
};

/** Languages that a reader wants a page in, best first: what the address says comes before what the browser says. */
export function languagesAsked({ url = '', headers }: Asking): readonly string[] {
  const chosen =
    url.length > MAX_ADDRESS || !url.includes(LANGUAGE_PARAMETER)
      ? undefined
      : URL.parse(url, 'http://here.invalid')?.searchParams.get(LANGUAGE_PARAMETER);
  const ranges = languageRanges(headers['accept-language']);
  return typeof chosen === 'string' && TAG.test(chosen) ? [chosen, ...ranges] : ranges;
}

/** @param otherwise languages of the tenant, for readers who want none of ours; English where it has none of ours either. */
export function chooseLanguage(asked: readonly string[], otherwise: readonly string[] = []): Language {
  return (pickLocale(LANGUAGES, asked) ?? pickLocale(LANGUAGES, otherwise) ?? 'en') as Language;
}

/**
 * The entry of a `display` to show (OpenID4VCI 1.0 section 12.2.4): in a language that is asked for, else the one without a
 * language, else the first one.
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
