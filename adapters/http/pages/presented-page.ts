import type { TenantLook } from '../../../domain/tenants/look.ts';
import { TEXTS } from './languages.ts';
import { escapeHtml } from './markup.ts';
import { type Page, page, type Reader } from './page.ts';

/** What a person sees whose wallet has answered. It says nothing of who they are, what was asked for, or how it went. */
export function presentedPage(look: TenantLook, reader: Reader): Page {
  const { presented, presentedAdvice, closeWindow } = TEXTS[reader.language];
  return page({
    reader,
    look,
    title: presented,
    main: `<h1>${escapeHtml(presented)}</h1>
<p>${escapeHtml(presentedAdvice)}</p>
<p>${escapeHtml(closeWindow)}</p>`,
  });
}
