/** One prepared statement. Parameters are `$1`, `$2`, …; the tenant is always `$1`. */
export type Statement = {
  readonly name: string;
  readonly text: string;
  /** The statement reads a few rows by their keys, so that other calls may share its batch. */
  readonly isBrief?: true;
};

export const namedStatement = (name: string, text: string): Statement => ({ name, text });
export const brief = (name: string, text: string): Statement => ({ name, text, isBrief: true });

export type Row = Readonly<Record<string, unknown>>;
export type Parameter = string | number | boolean | null | readonly string[] | readonly number[];

/** A value of a column, an array of texts, or null. */
export type Field = string | number | boolean | null | readonly string[];

/** SQL list of words of the domain, which need no escaping. */
export function listOf(words: readonly string[]): string {
  return words.map((word) => `'${word}'`).join(', ');
}
