import type { Page } from 'playwright-core';

type Look = { readonly name: string; readonly width: number; readonly media: Parameters<Page['emulateMedia']>[0] };

/** How people look at a page: 640 is what is left of 1280 at 200 %, and 320 at 400 % (WCAG 2.2, 1.4.10). */
export const LOOKS: readonly Look[] = [
  { name: 'wide', width: 1280, media: { colorScheme: 'light' } },
  { name: 'a small dark screen', width: 390, media: { colorScheme: 'dark', reducedMotion: 'reduce' } },
  { name: 'twice as large', width: 640, media: { colorScheme: 'light' } },
  { name: 'four times as large', width: 320, media: { colorScheme: 'light' } },
  { name: 'colours of the person', width: 1280, media: { colorScheme: 'dark', forcedColors: 'active' } },
];

export async function lookAs(page: Page, { width, media }: Look): Promise<void> {
  await page.setViewportSize({ width, height: 900 });
  await page.emulateMedia({ colorScheme: 'light', forcedColors: 'none', reducedMotion: 'no-preference', ...media });
}

/** Evaluated on a page, which knows names that there are not here. */
const FAULTS = `(() => {
  const isSeen = (one) => one.checkVisibility({ visibilityProperty: true }) && one.getBoundingClientRect().width > 1;
  const nameOf = (one) =>
    (one.ariaLabel ?? one.labels?.[0]?.innerText ?? one.textContent ?? '').trim().replaceAll(/\\s+/g, ' ').slice(0, 300);
  const faults = [];
  const named = new Map();
  for (const one of document.querySelectorAll('button, a, input, select, textarea, summary')) {
    if (!isSeen(one)) continue;
    const what = one.tagName + ' "' + nameOf(one) + '"';
    if (nameOf(one) === '') faults.push('no name: ' + one.outerHTML.slice(0, 100));
    const { width, height } = one.getBoundingClientRect();
    // WCAG 2.2, 2.5.8: not for links within a sentence, nor where a label is a part of the target.
    const isInSentence = one.tagName === 'A' && getComputedStyle(one).display === 'inline'
      && one.parentElement.textContent.trim() !== one.textContent.trim();
    if (!isInSentence && one.closest('label') === null && Math.min(width, height) < 24)
      faults.push('too small: ' + what + ' ' + Math.round(width) + ' x ' + Math.round(height));
    if (one.tagName !== 'SUMMARY') named.set(what, [...(named.get(what) ?? []), one.href ?? one]);
  }
  for (const [what, all] of named) if (new Set(all).size > 1) faults.push('several of one name: ' + what);
  let level = 0;
  for (const heading of [...document.querySelectorAll('h1, h2, h3, h4, h5, h6')].filter(isSeen)) {
    const next = Number(heading.tagName.slice(1));
    if (next > level + 1) faults.push('a level of headings is left out before ' + heading.textContent);
    level = next;
  }
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth > clientWidth) faults.push('wider than the window: ' + scrollWidth + ' > ' + clientWidth);
  if (matchMedia('(prefers-reduced-motion: reduce)').matches)
    for (const { effect, animationName, transitionProperty } of document.getAnimations())
      if (effect.getComputedTiming().duration > 10 && effect.target.ariaBusy !== 'true')
        faults.push('moves: ' + effect.target.tagName + '.' + effect.target.className + ' ' + (animationName ?? transitionProperty));
  return faults;
})()`;

/** What hinders people who do not see, do not hold still, enlarge, or do without colours. */
export async function hindrances(page: Page): Promise<string[]> {
  return (await page.evaluate(FAULTS)) as string[];
}
