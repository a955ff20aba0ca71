import type { TenantBranding } from '../../../domain/tenants/branding.ts';
import { TEXTS } from './languages.ts';
import { escapeHtml } from './markup.ts';
import { type Page, page, type Reader } from './page.ts';

/** Page after the wallet has answered. It reveals neither the person nor the request nor the result. */
export function presentedPage(look: TenantBranding, reader: Reader): Page {
  const { presented, presentedAdvice, closeWindow } = TEXTS[reader.language];
  return page({
    reader,
    branding: look,
    title: presented,
    main: `<h1>${escapeHtml(presented)}</h1>
<p>${escapeHtml(presentedAdvice)}</p>
<p>${escapeHtml(closeWindow)}</p>`,
  });
}
