/** One prepared statement. Parameters are `$1`, `$2`, …; the tenant is always `$1`. */
export type Statement = {
  readonly name: string;
  readonly text: string;
  /** It only reads, a few rows by their keys: others may go with it, and wait for it. */
  readonly isBrief?: true;
};

export const named = (name: string, text: string): Statement => ({ name, text });
export const brief = (name: string, text: string): Statement => ({ name, text, isBrief: true });

export type Row = Readonly<Record<string, unknown>>;
export type Parameter = string | number | boolean | null | readonly string[] | readonly number[];

/** A value of a column, an array of texts, or null. */
export type Field = string | number | boolean | null | readonly string[];

/** Words of the domain, fit to stand between brackets in a statement. */
export function listOf(words: readonly string[]): string {
  return words.map((word) => `'${word}'`).join(', ');
}
