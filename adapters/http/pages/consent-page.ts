import type { Consent } from '../../../application/oauth/consents.ts';
import { cardsOf } from './cards.ts';
import { LANGUAGE_PARAMETER, TEXTS } from './languages.ts';
import { escapeHtml, fill, fillText, type Markup, within } from './markup.ts';
import { type Page, page, type Reader, tenantName } from './page.ts';

/** Asks the user whether the wallet shall have the credentials. */
export function consentPage(consent: Consent, reader: Reader): Page {
  const { look, credentials, action, fields } = consent;
  const { language } = reader;
  const texts = TEXTS[language];
  const shown = tenantName(look, reader);
  const issuer = within(shown, language);
  const cards = cardsOf(credentials, reader, texts.contains);
  const hidden = Object.entries(fields)
    .map(([name, value]) => `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`)
    .join('\n');
  return page({
    reader,
    look,
    cards: cards.colours,
    title: fillText(texts.consentTitle, { issuer: shown.name }),
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

/** `bdi`: what a stranger calls itself cannot turn the words around it. */
function recipient({ clientId, isVerified, destination }: Consent, { language }: Reader): Markup {
  const texts = TEXTS[language];
  const wallet = `<bdi id="client">${escapeHtml(clientId)}</bdi>`;
  const place = `<strong id="destination">${escapeHtml(destination)}</strong>`;
  const goesTo = fill(destination.endsWith(':') ? texts.opensApp : texts.goesTo, { place });
  if (isVerified) return `<p>${goesTo}</p>\n<p class="note">${fill(texts.wallet, { wallet })}</p>`;
  return `<div class="warning">
<p>${goesTo}</p>
<p><strong>${escapeHtml(texts.notVerified)}</strong> ${fill(texts.notVerifiedAdvice, { wallet })}</p>
</div>`;
}
