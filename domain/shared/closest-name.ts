/**
 * The name that was probably meant by one that nobody knows.
 * @returns undefined when none is near enough to be asked about.
 */
export function closestName(name: string, known: readonly string[]): string | undefined {
  const given = letters(name);
  let best: string | undefined;
  let fewest = slipsIn(given.length) + 1;
  for (const candidate of known) {
    const distance = slips(given, letters(candidate), fewest);
    if (distance >= fewest) continue;
    best = candidate;
    fewest = distance;
  }
  return best;
}

/** What is left of a name without case, underscores and a plural. */
export function letters(name: string): string {
  return name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, '')
    .replace(/s$/, '');
}

/** Short names differ in one letter and mean something else. */
function slipsIn(length: number): number {
  if (length < 3) return 0;
  return length < 8 ? 1 : 2;
}

/**
 * Letters left out, added, changed or swapped with their neighbour between two names (optimal string alignment).
 * @returns at least `limit` when there are that many.
 */
function slips(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let older: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const isSame = a[row - 1] === b[column - 1];
      const isSwapped = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      current.push(
        Math.min(
          (previous[column] ?? 0) + 1,
          (current[column - 1] ?? 0) + 1,
          (previous[column - 1] ?? 0) + (isSame ? 0 : 1),
          isSwapped ? (older[column - 2] ?? 0) + 1 : limit,
        ),
      );
    }
    older = previous;
    previous = current;
  }
  return previous[b.length] ?? limit;
}

/** What is said of a member that nobody knows. */
export function unknownMember(name: string, known: readonly string[]): string {
  const meant = closestName(name, known);
  return `there is no such member${meant === undefined ? '' : `; did you mean ${meant}?`}`;
}
