/** The used part of the report of Stryker (mutation-testing-report-schema). */
export type Report = { readonly files: Readonly<Record<string, { readonly source: string; readonly mutants: readonly Mutant[] }>> };

type Mutant = {
  readonly status: string;
  readonly replacement: string;
  readonly location: { readonly start: SourcePosition; readonly end: SourcePosition };
};

/** Both count from 1. */
type SourcePosition = { readonly line: number; readonly column: number };

/** A condition with a surviving mutant. */
export type ListedSurvivor = {
  readonly file: string;
  /** The text of the condition, with single blanks. */
  readonly check: string;
  /** `true` or `false`; both when left out. */
  readonly becomes?: string;
  readonly reason: string;
};

const GOAL = 0.95;
const NOTICED = ['Killed', 'Timeout'];
const UNNOTICED = ['Survived', 'NoCoverage'];

/** @returns what to print, and whether enough was noticed and every survivor is listed. */
export function evaluateReport({ files }: Report, listedSurvivors: readonly ListedSurvivor[]): { lines: string[]; isGood: boolean } {
  const usedSurvivors = new Set<ListedSurvivor>();
  const lines: string[] = [];
  let noticed = 0;
  let unnoticed = 0;
  for (const [file, { source, mutants }] of Object.entries(files)) {
    for (const { status, replacement, location } of mutants) {
      if (NOTICED.includes(status)) noticed++;
      if (!UNNOTICED.includes(status)) continue;
      unnoticed++;
      const check = textAt(source, location);
      const matchingSurvivor = listedSurvivors.find(
        (candidate) => candidate.file === file && candidate.check === check && (candidate.becomes ?? replacement) === replacement,
      );
      if (matchingSurvivor === undefined) lines.push(`${file}:${location.start.line} ${check} may be ${replacement}`);
      else usedSurvivors.add(matchingSurvivor);
    }
  }
  const isComplete = lines.length === 0;
  for (const survivor of listedSurvivors)
    if (survivor.file in files && !usedSurvivors.has(survivor))
      lines.push(`${survivor.file} ${survivor.check} is noticed: no longer list it`);
  const share = noticed / Math.max(1, noticed + unnoticed);
  lines.push(`${noticed} of ${noticed + unnoticed} checks noticed, ${(share * 100).toFixed(1)} %; ${usedSurvivors.size} listed survivors`);
  return { lines, isGood: isComplete && share >= GOAL };
}

function textAt(source: string, { start, end }: Mutant['location']): string {
  const lines = source.split('\n').slice(start.line - 1, end.line);
  const lastIndex = lines.length - 1;
  return lines
    .map((line, index) => line.slice(index === 0 ? start.column - 1 : 0, index === lastIndex ? end.column - 1 : undefined))
    .join(' ')
    .replaceAll(/\s+/g, ' ')
    .trim();
}
