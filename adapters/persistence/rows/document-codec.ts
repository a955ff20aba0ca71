/**
 * Documents travel as JSON; a `Date` becomes an object with this one member. The control character keeps a
 * customer's own claims from being taken for a date.
 */
const DATE = '\u0001date';

/** @throws Error for a time that is none: it could not be read again. */
export function encodeDocument(document: unknown): string {
  return JSON.stringify(document, function (this: Record<string, unknown>, key: string, value: unknown) {
    const original = this[key];
    if (original instanceof Date) {
      if (Number.isNaN(original.getTime())) throw new Error(`"${key}" is no time and cannot be stored.`);
      return { [DATE]: original.getTime() };
    }
    return value;
  });
}

export function decodeDocument<T>(text: string): T {
  return JSON.parse(text, (_key, value: unknown) => {
    if (typeof value !== 'object' || value === null) return value;
    const milliseconds = (value as Record<string, unknown>)[DATE];
    // Null stands where the end of a certificate was no time. Nothing is valid until then, so it has ended.
    if (milliseconds === null) return new Date(0);
    return typeof milliseconds === 'number' ? new Date(milliseconds) : value;
  }) as T;
}
