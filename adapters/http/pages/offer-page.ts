import type { OfferPage } from '../../../application/offer-pages/show-offer-page.ts';
import { MAX_QR_LENGTH } from '../../../domain/shared/invocation-uri.ts';
import { cardsOf, wholeCredential } from './cards.ts';
import { displayFor, TEXTS } from './languages.ts';
import { escapeHtml, fill, fillText, isolatedName, type Markup, nameMarkup } from './markup.ts';
import { type Page, page, type Reader, tenantName } from './page.ts';

type OpenPage = Extract<OfferPage, { status: 'open' }>;

/** Hands an offer or a request from a browser to a wallet: to another device by a QR code, to the same one by a link. */
export async function offerPage(offer: OfferPage, reader: Reader): Promise<Page> {
  return offer.status === 'open' ? openPage(offer, reader) : closedPage(offer, reader);
}

/** The page reveals neither who used the offer nor the result. */
function closedPage({ look, status: standing }: Exclude<OfferPage, OpenPage>, reader: Reader): Page {
  const texts = TEXTS[reader.language];
  const title = texts[standing === 'over' ? 'gone' : standing];
  const advice = standing === 'used' ? texts.closeWindow : texts.overAdvice;
  return page({ reader, branding: look, title, main: `<h1>${escapeHtml(title)}</h1>\n<p>${escapeHtml(advice)}</p>` });
}

async function openPage({ look, kind, invitation }: OpenPage, reader: Reader): Promise<Page> {
  const { language } = reader;
  const texts = TEXTS[language];
  const displayName = tenantName(look, reader);
  const issuerMarkup = isolatedName(displayName, language);
  const isOffer = kind === 'issuance';
  const title = isOffer ? texts.offerTitle : texts.requestTitle;
  const credentials = isOffer
    ? invitation.credentials
    : invitation.credentials.map((credential) =>
        credential.claims.length > 0 ? credential : { ...credential, claims: [wholeCredential(reader)] },
      );
  const cards = cardsOf(credentials, reader, isOffer ? texts.contains : undefined);
  const code = invitation.needsCode ? `\n<p>${fill(texts.codeNeeded, { issuer: issuerMarkup })}</p>` : '';
  return page({
    reader,
    branding: look,
    cards: cards.colours,
    title: fillText(title, { issuer: displayName.name, verifier: displayName.name }),
    main: `<h1>${fill(title, { issuer: issuerMarkup, verifier: issuerMarkup })}</h1>
${await scanned(invitation.crossDeviceLink, reader)}
<p class="actions"><a class="button primary" href="${escapeHtml(invitation.link)}" rel="noreferrer">${escapeHtml(texts.openWallet)}</a></p>${code}
<p>${fill(isOffer ? texts.willIssue : texts.requestIntro, { issuer: issuerMarkup, verifier: issuerMarkup })}</p>
${cards.markup}${purpose(invitation, reader)}
<p>${fill(texts.validUntil, { time: time(invitation.expiresAt, reader) })}</p>
<p>${escapeHtml(texts.expected)}</p>
<p><a href="">${escapeHtml(texts.checkAgain)}</a></p>`,
  });
}

async function scanned(link: string, { language }: Reader): Promise<Markup> {
  const { scan, qrCode, tooLongToScan } = TEXTS[language];
  if (link.length > MAX_QR_LENGTH) return `<p>${escapeHtml(tooLongToScan)}</p>`;
  // Loaded with the first page, because most processes show none for a while.
  const { renderSVG } = await import('uqr');
  const image = renderSVG(link, { border: 2 });
  return `<p>${escapeHtml(scan)}</p>\n<div class="qr" role="img" aria-label="${escapeHtml(qrCode)}">${image}</div>`;
}

function purpose({ purposes }: OpenPage['invitation'], { language, languages }: Reader): Markup {
  const entries = purposes.map(({ lang, content }) => ({ locale: lang, name: content }));
  const localizedPurpose = displayFor(entries, [...languages, language]);
  return localizedPurpose === undefined ? '' : `\n<p>${nameMarkup(localizedPurpose, language)}</p>`;
}

/** The time zone of the reader is unknown, so the page states the zone. */
function time(timestamp: Date, { language }: Reader): Markup {
  // English without a region would use American dates and hours.
  const formatted = new Intl.DateTimeFormat(language === 'en' ? 'en-IE' : language, {
    day: 'numeric',
    month: 'long',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    timeZone: 'UTC',
    timeZoneName: 'short',
  }).format(timestamp);
  return `<time datetime="${timestamp.toISOString()}">${escapeHtml(formatted)}</time>`;
}
