/** What was made while tests run, and is given back when the test that made it is over, or the file. */
let testCleanups: (() => void)[] | undefined;
let fileCleanups: (() => void)[] = [];

/**
 * Has something done when it is over with what is running now: the test, with the hooks around it; or the whole file,
 * for what `before` hooks make.
 */
export function onCleanup(callback: () => void): void {
  (testCleanups ?? fileCleanups).push(callback);
}

export function beginTest(): void {
  testCleanups = [];
}

export function endTest(): void {
  const callbacks = testCleanups ?? [];
  testCleanups = undefined;
  for (const callback of callbacks) callback();
}

export function endFile(): void {
  const callbacks = fileCleanups;
  fileCleanups = [];
  for (const callback of callbacks) callback();
}
