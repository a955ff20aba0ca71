import { type ErrorExplanation, REFUSAL_REFERENCE, SESSION_FAILURE_REFERENCE } from '../../../../../domain/shared/error-reference.ts';

/** Explains a failure code of a session; undefined for codes of another release. */
export const explainFailure = (code: string) => explanationOf(SESSION_FAILURE_REFERENCE, code);

/** Explains a reason of a rejected credential; undefined for texts such as `missing card`. */
export const explainReason = (reason: string) => explanationOf(REFUSAL_REFERENCE, reason);

/** The texts without backticks, which are for Markdown. */
function explanationOf(table: Readonly<Record<string, ErrorExplanation>>, code: string) {
  const entry = Object.hasOwn(table, code) ? table[code] : undefined;
  if (entry === undefined) return undefined;
  return { meaning: plain(entry.meaning), cause: plain(entry.cause), fix: plain(entry.fix) };
}

const plain = (text: string) => text.replaceAll('`', '');
