import { TEXTS } from './languages.ts';
import { escapeHtml, fill } from './markup.ts';
import { type Page, page, type Reader } from './page.ts';

/** Page at the root address for a person with a browser. @param hasGuide true if the documentation is served. */
export function homePage(publicUrl: string, reader: Reader, hasGuide: boolean): Page {
  const texts = TEXTS[reader.language];
  const link = (path: string, text: string) => `<li><a href="${escapeHtml(publicUrl + path)}">${escapeHtml(text)}</a></li>`;
  return page({
    reader,
    title: 'Vidimus',
    main: `<h1>Vidimus</h1>
<p>${escapeHtml(texts.home)}</p>
<p>${escapeHtml(texts.homeAdvice)}</p>
<ul>
${link('/console', texts.homeConsole)}
${link('/docs', texts.homeApi)}
${hasGuide ? link('/docs/guide', texts.homeDocumentation) : ''}
</ul>
${hasGuide ? '' : `<p class="note">${fill(texts.homeGuide, { folder: '<code>docs</code>' })}</p>`}`,
  });
}
