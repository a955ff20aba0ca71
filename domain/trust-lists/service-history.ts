/** A previous state of a service (TS 119 612 section 5.6, TS 119 602 section 6.7). */
export type PreviousState = { readonly type: string | undefined; readonly status: string; readonly since: Date };

/** A half-open period: `from` is included, `until` is not. */
export type Period = { readonly from: Date; readonly until: Date };

/** Limit of parsed states per service; older ones are ignored. */
export const MAX_STATES = 50;

/**
 * Periods before the current state in which a service was approved.
 * @param currentStart start of the current state.
 * @param history in any order; states with the same start are ambiguous and not accepted.
 */
export function approvedPeriods(
  currentStart: Date,
  history: readonly PreviousState[],
  isGood: (state: PreviousState) => boolean,
): readonly Period[] {
  const earlierStates = history.filter((state) => state.since < currentStart).sort((a, b) => b.since.getTime() - a.since.getTime());
  return earlierStates.flatMap((state, index) => {
    const periodEnd = earlierStates[index - 1]?.since ?? currentStart;
    const isAlone = earlierStates.every((otherState) => otherState === state || otherState.since.getTime() !== state.since.getTime());
    return isAlone && isGood(state) ? [{ from: state.since, until: periodEnd }] : [];
  });
}

/** True if a time lies in one of these periods, excluding their ends. */
export function isWithin(periods: readonly Period[], time: Date): boolean {
  return periods.some(({ from, until: periodEnd }) => time >= from && time < periodEnd);
}
