import { isJsonObject, type Json } from '../shared/json.ts';

/** Why data is asked for, by language. */
export type StatedPurpose = { readonly lang: string; readonly content: string };

/** What a registration certificate says of its intended use (ETSI TS 119 475 section 5.2.4); what is malformed is passed over. */
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
 * One certificate is for one intended use (ARF 3.0 RPRC_09 and RPRC_19), and its purpose is how users are told of it. Where both are in
 * one language they have to be the same.
 * @returns the language in which the certificate says something else.
 */
export function differingPurpose(registered: readonly StatedPurpose[], configured: readonly StatedPurpose[]): string | undefined {
  const differing = configured.find(({ lang, content }) => {
    const inLanguage = registered.filter((one) => one.lang.toLowerCase() === lang.toLowerCase());
    return inLanguage.length > 0 && inLanguage.every((one) => one.content.trim() !== content.trim());
  });
  return differing?.lang;
}
