import { isJsonObject, type Json } from '../shared/json.ts';

/** A purpose of a presentation request in one language. */
export type StatedPurpose = { readonly lang: string; readonly content: string };

/** The purposes in a registration certificate (ETSI TS 119 475 section 5.2.4); malformed entries are skipped. */
export function parsePurposes(value: Json | undefined): readonly StatedPurpose[] {
  if (!Array.isArray(value)) return [];
  return (value as readonly Json[]).flatMap((entry) => {
    if (!isJsonObject(entry)) return [];
    const { lang, content, value: older } = entry;
    const text = content ?? older;
    return typeof lang === 'string' && typeof text === 'string' ? [{ lang, content: text }] : [];
  });
}

/**
 * A certificate is for one intended use (ARF 3.0 RPRC_09 and RPRC_19), whose purpose is shown to users. Purposes in the same language must
 * be equal.
 * @returns the language in which they differ.
 */
export function findDifferingPurposeLanguage(
  registered: readonly StatedPurpose[],
  configured: readonly StatedPurpose[],
): string | undefined {
  const differing = configured.find(({ lang, content }) => {
    const inLanguage = registered.filter((purpose) => purpose.lang.toLowerCase() === lang.toLowerCase());
    return inLanguage.length > 0 && inLanguage.every((purpose) => purpose.content.trim() !== content.trim());
  });
  return differing?.lang;
}
