import type { TenantBranding } from '../../../domain/tenants/branding.ts';
import { TEXTS } from './languages.ts';
import { escapeHtml } from './markup.ts';
import { type Page, page, type Reader } from './page.ts';

/** Creates the page that users see after their wallet has responded. It reveals neither the person nor the request nor the result. */
export function presentedPage(branding: TenantBranding, reader: Reader): Page {
  const { presented, presentedAdvice, closeWindow } = TEXTS[reader.language];
  return page({
    reader,
    branding,
    title: presented,
    main: `<h1>${escapeHtml(presented)}</h1>
<p>${escapeHtml(presentedAdvice)}</p>
<p>${escapeHtml(closeWindow)}</p>`,
  });
}
