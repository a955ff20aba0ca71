let last: readonly Element[] = [];
let isDue = false;

const DRAWN_MS = 50;
const FOCUSABLE = 'a,button,input,label,select,summary,textarea,[tabindex]';

export function keepFocus(): void {
  addEventListener('focusin', ({ target }) => {
    last = target instanceof Element ? [target, ...outside(target)] : [];
  });
  addEventListener('pointerdown', ({ target }) => {
    // Who clicks beside everything wants the focus nowhere.
    if (target instanceof Element && target.closest(FOCUSABLE) === null) last = [];
  });
  const observed = { subtree: true, childList: true, attributeFilter: ['disabled', 'hidden', 'open'] };
  new MutationObserver(() => {
    if (!isDue) setTimeout(bringBack, DRAWN_MS);
    isDue = true;
  }).observe(document.body, observed);
}

function bringBack(): void {
  isDue = false;
  const [had] = last;
  if (had === undefined || document.activeElement !== document.body) return;
  // What works is enabled again when it is done.
  const isHere = isThere(had) && (had.ariaBusy === 'true' || !had.matches(':disabled'));
  focus(isHere ? had : nearestHeading());
}

function nearestHeading(): Element | undefined {
  for (const place of last.slice(1).filter(isThere)) {
    const heading = [...place.querySelectorAll('h1,h2,h3')].find(isThere);
    if (heading !== undefined) return heading;
  }
  return undefined;
}

function* outside({ parentElement }: Element): Generator<Element> {
  if (parentElement === null) return;
  yield parentElement;
  yield* outside(parentElement);
}

function isThere(element: Element): boolean {
  return element.isConnected && element.checkVisibility();
}

/** Headings are not reached by the tabulator, and may have the focus all the same. */
export function focus(element: Element | null | undefined): void {
  if (!(element instanceof HTMLElement)) return;
  if (/^H\d$/.test(element.tagName)) element.tabIndex = -1;
  element.focus();
}
