import type { OfferPage } from '../../../application/offer-pages/show-offer-page.ts';
import { MAX_QR_LENGTH } from '../../../domain/shared/invocation-uri.ts';
import { cardsOf, wholeCredential } from './cards.ts';
import { displayFor, TEXTS } from './languages.ts';
import { escapeHtml, fill, fillText, type Markup, named, within } from './markup.ts';
import { type Page, page, type Reader, tenantName } from './page.ts';

type OpenPage = Extract<OfferPage, { standing: 'open' }>;

/** How an offer or a request gets from a browser to a wallet: on another device by its code, on this one by its link. */
export async function offerPage(shown: OfferPage, reader: Reader): Promise<Page> {
  return shown.standing === 'open' ? openPage(shown, reader) : closedPage(shown, reader);
}

/** It says nothing of who used it, nor of what came of it. */
function closedPage({ look, standing }: Exclude<OfferPage, OpenPage>, reader: Reader): Page {
  const texts = TEXTS[reader.language];
  const title = texts[standing === 'over' ? 'gone' : standing];
  const advice = standing === 'used' ? texts.closeWindow : texts.overAdvice;
  return page({
    reader,
    look,
    title,
    main: `<h1>${escapeHtml(title)}</h1>\n<p>${escapeHtml(advice)}</p>`,
  });
}

async function openPage({ look, kind, invitation }: OpenPage, reader: Reader): Promise<Page> {
  const { language } = reader;
  const texts = TEXTS[language];
  const shown = tenantName(look, reader);
  const who = within(shown, language);
  const isOffer = kind === 'issuance';
  const title = isOffer ? texts.offerTitle : texts.requestTitle;
  const credentials = isOffer
    ? invitation.credentials
    : invitation.credentials.map((one) => (one.claims.length > 0 ? one : { ...one, claims: [wholeCredential(reader)] }));
  const cards = cardsOf(credentials, reader, isOffer ? texts.contains : undefined);
  const code = invitation.needsCode ? `\n<p>${fill(texts.codeNeeded, { issuer: who })}</p>` : '';
  return page({
    reader,
    look,
    cards: cards.colours,
    title: fillText(title, { issuer: shown.name, verifier: shown.name }),
    main: `<h1>${fill(title, { issuer: who, verifier: who })}</h1>
${await scanned(invitation.crossDeviceLink, reader)}
<p class="actions"><a class="button primary" href="${escapeHtml(invitation.link)}" rel="noreferrer">${escapeHtml(texts.openWallet)}</a></p>${code}
<p>${fill(isOffer ? texts.willIssue : texts.requestIntro, { issuer: who, verifier: who })}</p>
${cards.markup}${purpose(invitation, reader)}
<p>${fill(texts.validUntil, { time: time(invitation.expiresAt, reader) })}</p>
<p>${escapeHtml(texts.expected)}</p>
<p><a href="">${escapeHtml(texts.checkAgain)}</a></p>`,
  });
}

async function scanned(link: string, { language }: Reader): Promise<Markup> {
  const { scan, qrCode, tooLongToScan } = TEXTS[language];
  if (link.length > MAX_QR_LENGTH) return `<p>${escapeHtml(tooLongToScan)}</p>`;
  // Loaded with the first page: most processes show none for a while.
  const { renderSVG } = await import('uqr');
  const image = renderSVG(link, { border: 2 });
  return `<p>${escapeHtml(scan)}</p>\n<div class="qr" role="img" aria-label="${escapeHtml(qrCode)}">${image}</div>`;
}

function purpose({ purposes }: OpenPage['invitation'], { language, languages }: Reader): Markup {
  const entries = purposes.map(({ lang, content }) => ({ locale: lang, name: content }));
  const found = displayFor(entries, [...languages, language]);
  return found === undefined ? '' : `\n<p>${named(found, language)}</p>`;
}

/** Nobody has told where the reader is, so the zone stands beside it. */
function time(at: Date, { language }: Reader): Markup {
  // Without a region, English counts days and hours as in America.
  const shown = new Intl.DateTimeFormat(language === 'en' ? 'en-IE' : language, {
    day: 'numeric',
    month: 'long',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    timeZone: 'UTC',
    timeZoneName: 'short',
  }).format(at);
  return `<time datetime="${at.toISOString()}">${escapeHtml(shown)}</time>`;
}
