/**
 * The known name that a misspelt one probably means.
 * @returns undefined if no name is similar enough.
 */
export function closestName(name: string, knownNames: readonly string[]): string | undefined {
  const comparable = comparableName(name);
  let closest: string | undefined;
  let fewest = maxDistance(comparable.length) + 1;
  for (const candidate of knownNames) {
    const distance = editDistance(comparable, comparableName(candidate), fewest);
    if (distance >= fewest) continue;
    closest = candidate;
    fewest = distance;
  }
  return closest;
}

/** Normalizes a name for comparison: without case, underscores and plural. */
export function comparableName(name: string): string {
  return name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, '')
    .replace(/s$/, '');
}

/** Short names that differ in one letter are different names. */
function maxDistance(length: number): number {
  if (length < 3) return 0;
  return length < 8 ? 1 : 2;
}

/**
 * Edit distance with transpositions (optimal string alignment).
 * @returns at least `limit` for a distance of `limit` or more.
 */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let rowBeforePrevious: number[] = [];
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
          isSwapped ? (rowBeforePrevious[column - 2] ?? 0) + 1 : limit,
        ),
      );
    }
    rowBeforePrevious = previous;
    previous = current;
  }
  return previous[b.length] ?? limit;
}

export function unknownPropertyMessage(name: string, knownNames: readonly string[]): string {
  const suggestion = closestName(name, knownNames);
  return `there is no such property${suggestion === undefined ? '' : `; did you mean ${suggestion}?`}`;
}
