/** What was made while tests run, and is given back when the test that made it is over, or the file. */
let ofTest: (() => void)[] | undefined;
let ofFile: (() => void)[] = [];

/**
 * Has something done when it is over with what is running now: the test, with the hooks around it; or the whole file,
 * for what `before` hooks make.
 */
export function atTheEnd(work: () => void): void {
  (ofTest ?? ofFile).push(work);
}

export function testBegins(): void {
  ofTest = [];
}

export function testEnds(): void {
  const works = ofTest ?? [];
  ofTest = undefined;
  for (const work of works) work();
}

export function fileEnds(): void {
  const works = ofFile;
  ofFile = [];
  for (const work of works) work();
}
