/**
 * Documents travel as JSON; a `Date` becomes an object with this one member. The control character keeps a
 * customer's own claims from being taken for a date.
 */
const DATE = '\u0001date';

export function encodeDocument(document: unknown): string {
  return JSON.stringify(document, function (this: Record<string, unknown>, key: string, value: unknown) {
    const original = this[key];
    if (original instanceof Date) return { [DATE]: original.getTime() };
    return value;
  });
}

export function decodeDocument<T>(text: string): T {
  return JSON.parse(text, (_key, value: unknown) => {
    if (typeof value !== 'object' || value === null) return value;
    const milliseconds = (value as Record<string, unknown>)[DATE];
    return typeof milliseconds === 'number' ? new Date(milliseconds) : value;
  }) as T;
}
