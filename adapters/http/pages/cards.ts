import type { ShownClaim, ShownCredential } from '../../../domain/issuance/shown-credential.ts';
import { displayFor, TEXTS } from './languages.ts';
import { escapeHtml, inlineImage, type Markup, named } from './markup.ts';
import type { Reader } from './page.ts';

/** Images of more cards than these are left away: a page is read on a slow line, too. */
const MAX_LOGOS = 4;

export type Cards = { readonly markup: Markup; readonly colours: readonly ReturnType<typeof displayOf>[] };

function displayOf({ displays }: ShownCredential, { language, languages }: Reader) {
  return displayFor(displays, [...languages, language]);
}

/**
 * Each credential with a heading like a card, and the names of its claims; never their values.
 * @param heading of the claims; none where they follow from what was said before.
 */
export function cardsOf(credentials: readonly ShownCredential[], reader: Reader, heading?: string): Cards {
  const colours = credentials.map((credential) => displayOf(credential, reader));
  const items = credentials.map((credential, index) => {
    const display = colours[index];
    const logo = index < MAX_LOGOS ? inlineImage(display?.logo?.uri) : '';
    const name = named(display ?? { name: credential.id }, reader.language);
    const description =
      display?.description === undefined ? '' : `\n<p>${named({ name: display.description, locale: display.locale }, reader.language)}</p>`;
    return `<li>
<h2 class="card card-${index}">${logo}<span>${name}</span></h2>${description}
${claimsOf(credential.claims, reader, heading)}</li>`;
  });
  return { markup: `<ul class="cards">\n${items.join('\n')}\n</ul>`, colours };
}

function claimsOf(claims: readonly ShownClaim[], reader: Reader, heading?: string): Markup {
  if (claims.length === 0) return '';
  const items = claims.map((claim) => `<li>${claimName(claim, reader)}</li>`);
  const before = heading === undefined ? '' : `<p>${escapeHtml(heading)}</p>\n`;
  return `${before}<ul>\n${items.join('\n')}\n</ul>\n`;
}

function claimName({ names, fallback }: ShownClaim, { language, languages }: Reader): Markup {
  return named(displayFor(names, [...languages, language]) ?? { name: fallback }, language);
}

/** What stands where a verifier names no single claims. */
export function wholeCredential({ language }: Reader): ShownClaim {
  return { fallback: TEXTS[language].wholeCredential, names: [] };
}
