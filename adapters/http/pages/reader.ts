import type { TenantLook } from '../../../domain/tenants/look.ts';
import { chooseLanguage } from './languages.ts';
import type { Reader } from './page.ts';

/** @param look of the tenant, whose languages come before English for who wants none of ours. */
export function readerOf({ languages }: { readonly languages: readonly string[] }, look?: TenantLook): Reader {
  const otherwise = (look?.displays ?? []).flatMap(({ locale }) => locale ?? []);
  return { languages, language: chooseLanguage(languages, otherwise) };
}
