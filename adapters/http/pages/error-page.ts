import type { FailureDetails } from '../../../domain/shared/failure.ts';
import type { Texts } from './languages.ts';
import { TEXTS } from './languages.ts';
import { escapeHtml, fill, type Markup } from './markup.ts';
import { type BrandedReader, type Page, page } from './page.ts';

type ErrorTexts = { readonly title: keyof Texts; readonly advice: keyof Texts };

const DEFAULT_TEXTS: ErrorTexts = { title: 'refused', advice: 'refusedAdvice' };
/** Title and advice by the status of the response. */
const TEXTS_BY_STATUS: Readonly<Record<number, ErrorTexts>> = {
  404: { title: 'notFound', advice: 'notFoundAdvice' },
  405: { title: 'forWallet', advice: 'forWalletAdvice' },
  406: { title: 'forWallet', advice: 'forWalletAdvice' },
  410: { title: 'gone', advice: 'overAdvice' },
  429: { title: 'busy', advice: 'busyAdvice' },
  500: { title: 'internal', advice: 'internalAdvice' },
  503: { title: 'unavailable', advice: 'busyAdvice' },
};

type ErrorDetails = {
  readonly status: number;
  readonly detail: string;
  readonly requestId: string;
  readonly wayBack?: FailureDetails['wayBack'];
};

/** Error page for users. The button of `wayBack` leads to the wallet. */
export function errorPage({ status, detail, requestId, wayBack }: ErrorDetails, reader: BrandedReader): Page {
  const texts = TEXTS[reader.language];
  const { title, advice } = TEXTS_BY_STATUS[status] ?? DEFAULT_TEXTS;
  return page({
    reader,
    branding: reader.branding,
    title: texts[title],
    main: `<h1>${escapeHtml(texts[title])}</h1>
<p role="alert">${escapeHtml(texts[advice])}</p>
${wayBack === undefined ? '' : buttonTo(wayBack, texts)}<p class="note">${fill(texts.reference, { id: escapeHtml(requestId) })}</p>
<details class="note">
<summary>${escapeHtml(texts.details)}</summary>
<p lang="en">${escapeHtml(detail)}</p>
</details>`,
  });
}

function buttonTo({ url, place }: NonNullable<FailureDetails['wayBack']>, { backTo }: Texts): Markup {
  const text = fill(backTo, { place: `<bdi>${escapeHtml(place)}</bdi>` });
  return `<p class="actions"><a class="button primary" id="approve" rel="noreferrer" href="${escapeHtml(url)}">${text}</a></p>\n`;
}
