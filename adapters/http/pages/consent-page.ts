import type { Consent } from '../../../application/oauth/consents.ts';
import { cardsOf } from './cards.ts';
import { LANGUAGE_PARAMETER, TEXTS } from './languages.ts';
import { escapeHtml, fill, fillText, isolatedName, type Markup } from './markup.ts';
import { type Page, page, type Reader, tenantName } from './page.ts';

/** Asks the user for consent to give the credentials to the wallet. */
export function consentPage(consent: Consent, reader: Reader): Page {
  const { branding: look, credentials, action, fields } = consent;
  const { language } = reader;
  const texts = TEXTS[language];
  const displayName = tenantName(look, reader);
  const issuer = isolatedName(displayName, language);
  const cards = cardsOf(credentials, reader, texts.contains);
  const hidden = Object.entries(fields)
    .map(([name, value]) => `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`)
    .join('\n');
  return page({
    reader,
    branding: look,
    cards: cards.colours,
    title: fillText(texts.consentTitle, { issuer: displayName.name }),
    main: `<h1>${fill(texts.consentTitle, { issuer })}</h1>
<p>${fill(texts.willIssue, { issuer })}</p>
${cards.markup}
${recipient(consent, reader)}
<form method="post" action="${escapeHtml(`${action}?${LANGUAGE_PARAMETER}=${language}`)}">
${hidden}
<button type="submit" class="primary" id="approve" name="decision" value="approve">${escapeHtml(texts.approve)}</button>
<button type="submit" class="secondary" id="deny" name="decision" value="deny">${escapeHtml(texts.deny)}</button>
</form>`,
  });
}

/** `bdi` keeps the text of an unverified client from reordering the words around it. */
function recipient({ clientId, isVerified, destination }: Consent, { language }: Reader): Markup {
  const texts = TEXTS[language];
  const wallet = `<bdi id="client">${escapeHtml(clientId)}</bdi>`;
  const destinationMarkup = `<strong id="destination">${escapeHtml(destination)}</strong>`;
  const goesTo = fill(destination.endsWith(':') ? texts.opensApp : texts.goesTo, { place: destinationMarkup });
  if (isVerified) return `<p>${goesTo}</p>\n<p class="note">${fill(texts.wallet, { wallet })}</p>`;
  return `<div class="warning">
<p>${goesTo}</p>
<p><strong>${escapeHtml(texts.notVerified)}</strong> ${fill(texts.notVerifiedAdvice, { wallet })}</p>
</div>`;
}
