import type { TenantBranding } from '../../../domain/tenants/branding.ts';
import { chooseLanguage } from './languages.ts';
import type { Reader } from './page.ts';

/** @param branding of the tenant, whose languages precede English if no language of the reader is supported. */
export function readerOf({ languages }: { readonly languages: readonly string[] }, branding?: TenantBranding): Reader {
  const fallbackLanguages = (branding?.displays ?? []).flatMap(({ locale }) => locale ?? []);
  return { languages, language: chooseLanguage(languages, fallbackLanguages) };
}
