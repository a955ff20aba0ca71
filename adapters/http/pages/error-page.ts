import { TEXTS } from './languages.ts';
import { escapeHtml, fill } from './markup.ts';
import { type Page, type Person, page } from './page.ts';
import type { Texts } from './texts/texts.ts';

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
type Failed = { readonly status: number; readonly detail: string; readonly requestId: string };

/** What users see where there is nothing else for them, and no safe way back to the wallet. */
export function errorPage({ status, detail, requestId }: Failed, reader: Person): Page {
  const texts = TEXTS[reader.language];
  const { title, advice } = SAID[status] ?? REFUSED;
  return page({
    reader,
    look: reader.look,
    title: texts[title],
    main: `<h1>${escapeHtml(texts[title])}</h1>
<p role="alert">${escapeHtml(texts[advice])}</p>
<p class="note">${fill(texts.reference, { id: escapeHtml(requestId) })}</p>
<details class="note">
<summary>${escapeHtml(texts.details)}</summary>
<p lang="en">${escapeHtml(detail)}</p>
</details>`,
  });
}
