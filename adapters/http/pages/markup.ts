/** HTML whose dynamic parts are escaped. */
export type Markup = string;

export function escapeHtml(text: string): Markup {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** Fills the placeholders in braces of a text. @param parts values by name. */
export function fill(text: string, parts: Readonly<Record<string, Markup>>): Markup {
  return escapeHtml(text).replaceAll(/\{([a-z]+)\}/g, (_, name: string) => parts[name] ?? '');
}

export function fillText(text: string, parts: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\{([a-z]+)\}/g, (_, name: string) => parts[name] ?? '');
}

/** A larger image makes a page slow to load; the name is shown instead. */
const MAX_IMAGE = 64 * 1024;
/** Data URLs of images (RFC 2397). An SVG in an `img` element runs and loads nothing. */
const SAFE_IMAGE = /^data:image\/(?:png|jpeg|webp|svg\+xml)[;,]/i;

/**
 * Image that is embedded in the page. An image at an address is never loaded: its server would learn who reads the page. The text beside it
 * says the same, so it has no alternative text.
 */
export function inlineImage(uri: string | undefined): Markup {
  if (uri === undefined || uri.length > MAX_IMAGE || !SAFE_IMAGE.test(uri)) return '';
  return `<img src="${escapeHtml(uri)}" alt="">`;
}

type LocalizedName = { readonly name: string; readonly locale?: string | undefined };

/** A name within a sentence: `bdi` keeps it from reordering the words around it. */
export function isolatedName(localizedName: LocalizedName, language: string): Markup {
  return `<bdi>${nameMarkup(localizedName, language)}</bdi>`;
}

/** Marks the language of a name that differs from that of the page, for screen readers. */
export function nameMarkup({ name, locale }: LocalizedName, language: string): Markup {
  const isOther = locale !== undefined && locale.toLowerCase().split('-')[0] !== language;
  return isOther ? `<span lang="${escapeHtml(locale)}">${escapeHtml(name)}</span>` : escapeHtml(name);
}
