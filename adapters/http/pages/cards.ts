import type { ClaimPreview, CredentialPreview } from '../../../domain/issuance/credential-preview.ts';
import { displayFor, TEXTS } from './languages.ts';
import { escapeHtml, inlineImage, type Markup, nameMarkup } from './markup.ts';
import type { Reader } from './page.ts';

/** Number of credentials with logos; more are left out, because pages may be read on slow lines. */
const MAX_LOGOS = 4;

export type Cards = { readonly markup: Markup; readonly colours: readonly ReturnType<typeof displayOf>[] };

function displayOf({ displays }: CredentialPreview, { language, languages }: Reader) {
  return displayFor(displays, [...languages, language]);
}

/**
 * Shows each credential with a heading like a card and the names of its claims, never their values.
 * @param heading of the claims; none if they follow from the text before.
 */
export function cardsOf(credentials: readonly CredentialPreview[], reader: Reader, heading?: string): Cards {
  const colours = credentials.map((credential) => displayOf(credential, reader));
  const items = credentials.map((credential, index) => {
    const display = colours[index];
    const logo = index < MAX_LOGOS ? inlineImage(display?.logo?.uri) : '';
    const name = nameMarkup(display ?? { name: credential.id }, reader.language);
    const description =
      display?.description === undefined
        ? ''
        : `\n<p>${nameMarkup({ name: display.description, locale: display.locale }, reader.language)}</p>`;
    return `<li>
<h2 class="card card-${index}">${logo}<span>${name}</span></h2>${description}
${claimsOf(credential.claims, reader, heading)}</li>`;
  });
  return { markup: `<ul class="cards">\n${items.join('\n')}\n</ul>`, colours };
}

function claimsOf(claims: readonly ClaimPreview[], reader: Reader, heading?: string): Markup {
  if (claims.length === 0) return '';
  const items = claims.map((claim) => `<li>${claimName(claim, reader)}</li>`);
  const intro = heading === undefined ? '' : `<p>${escapeHtml(heading)}</p>\n`;
  return `${intro}<ul>\n${items.join('\n')}\n</ul>\n`;
}

function claimName({ names, fallback }: ClaimPreview, { language, languages }: Reader): Markup {
  return nameMarkup(displayFor(names, [...languages, language]) ?? { name: fallback }, language);
}

/** Text for a verifier that requests no single claims. */
export function wholeCredential({ language }: Reader): ClaimPreview {
  return { fallback: TEXTS[language].wholeCredential, names: [] };
}
