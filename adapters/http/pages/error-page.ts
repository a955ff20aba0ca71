import type { FailureDetails } from '../../../domain/shared/failure.ts';
import type { Texts } from './languages.ts';
import { TEXTS } from './languages.ts';
import { escapeHtml, fill, type Markup } from './markup.ts';
import { type Page, type Person, page } from './page.ts';

type Said = { readonly title: keyof Texts; readonly advice: keyof Texts };

const REFUSED: Said = { title: 'refused', advice: 'refusedAdvice' };
/** What happened and what to do next, by the status of the answer. */
const SAID: Readonly<Record<number, Said>> = {
  404: { title: 'notFound', advice: 'notFoundAdvice' },
  405: { title: 'forWallet', advice: 'forWalletAdvice' },
  406: { title: 'forWallet', advice: 'forWalletAdvice' },
  410: { title: 'gone', advice: 'overAdvice' },
  429: { title: 'busy', advice: 'busyAdvice' },
  500: { title: 'internal', advice: 'internalAdvice' },
  503: { title: 'unavailable', advice: 'busyAdvice' },
};

/** What support needs. */
type Failed = {
  readonly status: number;
  readonly detail: string;
  readonly requestId: string;
  readonly wayBack?: FailureDetails['wayBack'];
};

/** What users see where there is nothing else for them. The button of `wayBack` leads to the wallet. */
export function errorPage({ status, detail, requestId, wayBack }: Failed, reader: Person): Page {
  const texts = TEXTS[reader.language];
  const { title, advice } = SAID[status] ?? REFUSED;
  return page({
    reader,
    look: reader.look,
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
