import type { TenantBranding } from '../../../domain/tenants/branding.ts';
import type { Reply } from '../route.ts';
import { displayFor, type Language, TEXTS } from './languages.ts';
import { escapeHtml, inlineImage, type Markup, nameMarkup } from './markup.ts';
import { pageRules, policyFor, STYLE } from './page-style.ts';

export const PAGE_TYPE = 'text/html; charset=utf-8';

/** Page for users in a browser: no script, no external resource, accessible. */
export type Page = { readonly text: string; readonly headers: Readonly<Record<string, string>> };

/** Language of the page, and the other languages that the reader understands, best first. */
export type Reader = { readonly language: Language; readonly languages: readonly string[] };

/** Reader with the branding of the tenant of the page, if that is known. */
export type BrandedReader = Reader & { readonly branding?: TenantBranding };

type CardColours = { readonly background_color?: string | undefined; readonly text_color?: string | undefined };

type Content = {
  readonly reader: Reader;
  readonly title: string;
  readonly main: Markup;
  /** Branding of the page; none if no tenant is known. */
  readonly branding?: TenantBranding | undefined;
  /** Colours of the cards of the page, in their order. */
  readonly cards?: readonly (CardColours | undefined)[];
};

export function page({ reader, title, main, branding: look, cards = [] }: Content): Page {
  const { language } = reader;
  const rules = pageRules(
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
<style>${STYLE}</style>${rules === '' ? '' : `\n<style>${rules}</style>`}
</head>
<body>
${look === undefined ? '' : brand(look, reader)}<main>
${main}
</main>
${look === undefined ? '' : footer(look, reader)}</body>
</html>
`;
  return { text, headers: headersFor(rules, language) };
}

function headersFor(rules: string, language: Language): Readonly<Record<string, string>> {
  return {
    'Content-Security-Policy': policyFor(rules),
    'Content-Language': language,
    'Referrer-Policy': 'no-referrer',
    Vary: 'Accept, Accept-Language, Sec-Fetch-Mode, Sec-Fetch-Dest',
    'X-Robots-Tag': 'noindex',
  };
}

export function pageReply({ text, headers }: Page, more: Readonly<Record<string, string>> = {}, status = 200): Reply {
  return { status, text, contentType: PAGE_TYPE, headers: { ...headers, ...more } };
}

export function tenantName({ displays, name }: TenantBranding, { language, languages }: Reader) {
  return displayFor(displays, [...languages, language]) ?? { name };
}

function brand(branding: TenantBranding, reader: Reader): Markup {
  const displayName = tenantName(branding, reader);
  const logo = 'logo' in displayName ? inlineImage(displayName.logo?.uri) : '';
  return `<header>\n<div class="brand">${logo}<span>${nameMarkup(displayName, reader.language)}</span></div>\n</header>\n`;
}

const LINKED = /^(?:https?:\/\/|mailto:|tel:)/i;

function footer({ privacyUri, supportUri }: TenantBranding, { language }: Reader): Markup {
  const link = (uri: string | undefined, text: string) =>
    uri === undefined || !LINKED.test(uri) ? [] : [`<a href="${escapeHtml(uri)}" rel="noreferrer">${escapeHtml(text)}</a>`];
  const texts = TEXTS[language];
  const links = [...link(privacyUri, texts.privacy), ...link(supportUri, texts.support)];
  return links.length === 0 ? '' : `<footer>\n${links.join('\n')}\n</footer>\n`;
}
