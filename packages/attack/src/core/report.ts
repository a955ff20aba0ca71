import type { Outcome } from './case.ts';
import type { FamilyResult, Result } from './run.ts';

const OUTCOMES: readonly Outcome[] = ['held', 'open', 'unclear', 'skipped'];

export type Summary = Readonly<Record<Outcome, number>> & { readonly notRun: number; readonly run: number };

export function summarize(families: readonly FamilyResult[]): Summary {
  const results = families.flatMap((family) => family.results);
  const count = (outcome: Outcome) => results.filter((result) => result.outcome === outcome).length;
  const [held, open, unclear, skipped] = OUTCOMES.map(count);
  return {
    held: held ?? 0,
    open: open ?? 0,
    unclear: unclear ?? 0,
    skipped: skipped ?? 0,
    notRun: families.filter(({ state }) => state === 'not run').length,
    run: families.filter(({ state }) => state === 'run').length,
  };
}

/** 0: nothing open. 1: something open. 2: something could not be run, or nothing was. */
export function exitCodeOf({ open, notRun, run }: Summary): number {
  if (open > 0) return 1;
  return notRun > 0 || run === 0 ? 2 : 0;
}

/** One line per family, as soon as it is completed. */
export function progressOf({ family, state, reason, results }: FamilyResult): string {
  if (state !== 'run') return `${family}: ${state} (${reason})`;
  const counted = OUTCOMES.map((outcome) => [outcome, results.filter((result) => result.outcome === outcome).length] as const);
  const outcomeCounts = counted.filter(([, count]) => count > 0).map(([outcome, count]) => `${count} ${outcome}`);
  return `${family}: ${outcomeCounts.join(', ')}`;
}

export function tableOf(families: readonly FamilyResult[]): string {
  const rows = families.flatMap(({ family, state, reason, results }) =>
    state === 'not run'
      ? [[family, '(the whole family)', '', 'not run', reason]]
      : results.map(({ name, section, outcome, seen: observation }) => [family, name, section, outcome, observation]),
  );
  const head = ['family', 'case', 'section', 'outcome', 'seen'];
  const lines = [head, ...rows];
  const widths = head.map((_, column) => Math.min(60, Math.max(...lines.map((row) => (row[column] ?? '').length))));
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd();
  return [head, ...rows].map(line).join('\n');
}

/** The report about an open case. */
export function describeOpenCases(families: readonly FamilyResult[]): string {
  const describeOpenCase = ({ family, name, section, why, safe, seen: observation }: Result) =>
    `OPEN  ${family}: ${name}\n      ${section}: ${why}\n      seen: ${observation}; safe would be: ${safe}`;
  return families.flatMap(({ results }) => results.filter(({ outcome }) => outcome === 'open').map(describeOpenCase)).join('\n');
}
