import { createHash } from 'node:crypto';
import { type Colours, readableColours } from '../../../domain/shared/contrast.ts';

/** Style of every page: readable in light and dark mode, on a phone, and by keyboard. */
export const STYLE = `
:root { color-scheme: light dark; --page: #fff; --ink: #1b1b1f; --line: #1d4ed8; --back: #1d4ed8; --fore: #fff; --focus: #b45309; }
@media (prefers-color-scheme: dark) { :root { --page: #16181d; --ink: #e8eaf0; --line: #93b4ff; --focus: #fbbf24; } }
* { box-sizing: border-box; }
body { background: var(--page); color: var(--ink); font: 1.0625rem/1.5 system-ui, sans-serif; margin: 0; overflow-wrap: anywhere; }
main, footer, .brand { margin: 0 auto; max-width: 36rem; padding: 0 1.25rem; }
header { background: var(--back); color: var(--fore); font-weight: 600; }
.brand { align-items: center; display: flex; gap: .75rem; min-height: 3.5rem; padding-bottom: .5rem; padding-top: .5rem; }
.brand img { max-height: 2.5rem; max-width: 8rem; }
main { padding-bottom: 2rem; padding-top: 1.5rem; }
footer { border-top: 1px solid; font-size: .9375rem; padding-bottom: 1.5rem; padding-top: .75rem; }
footer a { display: inline-block; margin-right: 1.25rem; padding: .5rem 0; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 1rem; }
a { color: var(--line); }
li > a:only-child, p > a:only-child { display: inline-block; padding: .25rem 0; }
ul { padding-left: 1.25rem; }
.cards { list-style: none; padding: 0; }
.cards > li { margin-bottom: 1.5rem; }
.card { align-items: center; background: #12355b; border-radius: .75rem; color: #fff; display: flex; font-size: 1.125rem; gap: .75rem; margin: 0 0 .5rem; min-height: 4.5rem; padding: 1rem 1.25rem; }
.card img { max-height: 2.5rem; max-width: 5rem; }
form, .actions { display: flex; flex-wrap: wrap; gap: .75rem; margin-top: 2rem; }
button, .button { border: 2px solid var(--line); border-radius: .5rem; cursor: pointer; font: inherit; min-height: 2.75rem; padding: .5rem 1.5rem; text-decoration: none; }
.primary { background: var(--back); border-color: var(--back); color: var(--fore); }
.secondary { background: transparent; color: inherit; }
:focus-visible { outline: 3px solid var(--focus); outline-offset: 3px; }
.warning { border-left: .25rem solid #b45309; margin-top: 1.5rem; padding-left: 1rem; }
.note { font-size: .9375rem; }
.qr { background: #fff; border-radius: .5rem; margin: 1rem 0; max-width: 20rem; padding: .75rem; }
.qr svg { display: block; height: auto; width: 100%; }
summary { cursor: pointer; padding: .5rem 0; }
`;

const sourceOf = (style: string) => `'sha256-${createHash('sha256').update(style).digest('base64')}'`;
const STYLE_SOURCE = sourceOf(STYLE);

/** Rules for one page: colours of the tenant and of its cards, as far as text stays readable. */
export function pageRules(tenant: Parameters<typeof readableColours>[0], cards: readonly Parameters<typeof readableColours>[0][]): string {
  const rule = (selector: string, colours: Colours | undefined, text: (colours: Colours) => string) =>
    colours === undefined ? [] : [`${selector} { ${text(colours)} }`];
  const pageColours = rule(':root', readableColours(tenant), ({ background, text }) => `--back: ${background}; --fore: ${text};`);
  const cardColours = cards.flatMap((card, index) =>
    rule(`.card-${index}`, readableColours(card), ({ background, text }) => `background: ${background}; color: ${text};`),
  );
  return [...pageColours, ...cardColours].join('\n');
}

/**
 * Allows no script and no external resource. The form may redirect to a wallet, whose address can have any scheme, so there is no
 * `form-action`; the address was verified when the request was pushed.
 */
export function policyFor(rules: string): string {
  const styles = rules === '' ? STYLE_SOURCE : `${STYLE_SOURCE} ${sourceOf(rules)}`;
  return `default-src 'none'; frame-ancestors 'none'; base-uri 'none'; img-src data:; style-src ${styles}`;
}
