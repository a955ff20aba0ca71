import type { TenantLook } from '../../../domain/tenants/look.ts';
import type { Reply } from '../route.ts';
import { displayFor, type Language, TEXTS } from './languages.ts';
import { escapeHtml, inlineImage, type Markup, named } from './markup.ts';
import { ownStyle, policyFor, STYLE } from './page-style.ts';

export const PAGE_TYPE = 'text/html; charset=utf-8';

/** A page that users see in a browser: no script, nothing from elsewhere, readable by every assistive device. */
export type Page = { readonly text: string; readonly headers: Readonly<Record<string, string>> };

/** Who reads: the language of the page, and what else the reader understands, best first. */
export type Reader = { readonly language: Language; readonly languages: readonly string[] };

/** A reader, and whose page it is, where that is known. */
export type Person = Reader & { readonly look?: TenantLook };

type CardColours = { readonly background_color?: string | undefined; readonly text_color?: string | undefined };

type Content = {
  readonly reader: Reader;
  readonly title: string;
  readonly main: Markup;
  /** Whose page it is; none where no tenant is known. */
  readonly look?: TenantLook | undefined;
  /** Of the cards of the page, in their order. */
  readonly cards?: readonly (CardColours | undefined)[];
};

export function page({ reader, title, main, look, cards = [] }: Content): Page {
  const { language } = reader;
  const own = ownStyle(
    { background: look?.backgroundColor, text: look?.textColor },
    cards.map((card) => ({ background: card?.background_color, text: card?.text_color })),
  );
  const text = `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${escapeHtml(title)}</title>
<style>${STYLE}</style>${own === '' ? '' : `\n<style>${own}</style>`}
</head>
<body>
${look === undefined ? '' : brand(look, reader)}<main>
${main}
</main>
${look === undefined ? '' : footer(look, reader)}</body>
</html>
`;
  return { text, headers: headersFor(own, language) };
}

function headersFor(own: string, language: Language): Readonly<Record<string, string>> {
  return {
    'Content-Security-Policy': policyFor(own),
    'Content-Language': language,
    'Referrer-Policy': 'no-referrer',
    Vary: 'Accept, Accept-Language, Sec-Fetch-Mode, Sec-Fetch-Dest',
    'X-Robots-Tag': 'noindex',
  };
}

export function pageReply({ text, headers }: Page, more: Readonly<Record<string, string>> = {}, status = 200): Reply {
  return { status, text, contentType: PAGE_TYPE, headers: { ...headers, ...more } };
}

/** What the tenant is called in a language that the reader understands. */
export function tenantName({ displays, name }: TenantLook, { language, languages }: Reader) {
  return displayFor(displays, [...languages, language]) ?? { name };
}

function brand(look: TenantLook, reader: Reader): Markup {
  const shown = tenantName(look, reader);
  const logo = 'logo' in shown ? inlineImage(shown.logo?.uri) : '';
  return `<header>\n<div class="brand">${logo}<span>${named(shown, reader.language)}</span></div>\n</header>\n`;
}

const LINKED = /^(?:https?:\/\/|mailto:|tel:)/i;

function footer({ privacyUri, supportUri }: TenantLook, { language }: Reader): Markup {
  const link = (uri: string | undefined, text: string) =>
    uri === undefined || !LINKED.test(uri) ? [] : [`<a href="${escapeHtml(uri)}" rel="noreferrer">${escapeHtml(text)}</a>`];
  const texts = TEXTS[language];
  const links = [...link(privacyUri, texts.privacy), ...link(supportUri, texts.support)];
  return links.length === 0 ? '' : `<footer>\n${links.join('\n')}\n</footer>\n`;
}
