/** What was made while tests run, and is given back when the test that made it is over, or the file. */
let testCleanups: (() => void)[] | undefined;
let fileCleanups: (() => void)[] = [];

/**
 * Has something done when it is over with what is running now: the test, with the hooks around it; or the whole file,
 * for what `before` hooks make.
 */
export function onCleanup(work: () => void): void {
  (testCleanups ?? fileCleanups).push(work);
}

export function beginTest(): void {
  testCleanups = [];
}

export function endTest(): void {
  const works = testCleanups ?? [];
  testCleanups = undefined;
  for (const work of works) work();
}

export function endFile(): void {
  const works = fileCleanups;
  fileCleanups = [];
  for (const work of works) work();
}
