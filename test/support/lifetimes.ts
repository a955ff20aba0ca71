/** Cleanup callbacks of the current test and of the current file. */
let testCleanups: (() => void)[] | undefined;
let fileCleanups: (() => void)[] = [];

/** Registers a cleanup for the end of the current test, or of the file when called in a `before` hook. */
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
