/** The result of `read`; undefined when it throws, as parsers do for invalid input. */
export function valueOrUndefined<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
