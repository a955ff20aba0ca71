/** HTML whose parts are escaped already. */
export type Markup = string;

export function escapeHtml(text: string): Markup {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** A text with what stands in braces put in. @param parts in place of names. */
export function fill(text: string, parts: Readonly<Record<string, Markup>>): Markup {
  return escapeHtml(text).replaceAll(/\{([a-z]+)\}/g, (_, name: string) => parts[name] ?? '');
}

/** The same as mere text, for the title of a window. */
export function fillText(text: string, parts: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\{([a-z]+)\}/g, (_, name: string) => parts[name] ?? '');
}

/** Longer ones make a page slow to load; their names are shown instead. */
const MAX_IMAGE = 64 * 1024;
/** RFC 2397. An SVG runs nothing and loads nothing as an image. */
const SHOWN = /^data:image\/(?:png|jpeg|webp|svg\+xml)[;,]/i;

/**
 * An image that comes with the page. One of an address of its own is never loaded: who has it would be told who looks at the page.
 * @param what it stands beside says the same, so it has no words.
 */
export function inlineImage(uri: string | undefined): Markup {
  if (uri === undefined || uri.length > MAX_IMAGE || !SHOWN.test(uri)) return '';
  return `<img src="${escapeHtml(uri)}" alt="">`;
}

type Named = { readonly name: string; readonly locale?: string | undefined };

/** A name within a sentence: what somebody calls itself cannot turn the words around it. */
export function within(one: Named, language: string): Markup {
  return `<bdi>${named(one, language)}</bdi>`;
}

/** A name in its own language, where that is another than that of the page: for who has it read out. */
export function named({ name, locale }: Named, language: string): Markup {
  const isOther = locale !== undefined && locale.toLowerCase().split('-')[0] !== language;
  return isOther ? `<span lang="${escapeHtml(locale)}">${escapeHtml(name)}</span>` : escapeHtml(name);
}
