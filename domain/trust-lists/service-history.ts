/** What a service was before (TS 119 612 section 5.6, TS 119 602 section 6.7). */
export type FormerState = { readonly type: string | undefined; readonly status: string; readonly since: Date };

/** From then on, and until another state began. */
export type Period = { readonly from: Date; readonly until: Date };

/** States of one service that are read; a service that changes more often is read as far as that. */
export const MAX_STATES = 50;

/**
 * When a service stood as it has to, before its present state began.
 * @param since when the present state began.
 * @param history in any order; where two begin at one time nothing can be said, and neither counts.
 */
export function goodPeriods(since: Date, history: readonly FormerState[], isGood: (state: FormerState) => boolean): readonly Period[] {
  const former = history.filter((state) => state.since < since).sort((one, other) => other.since.getTime() - one.since.getTime());
  return former.flatMap((state, index) => {
    const until = former[index - 1]?.since ?? since;
    const isAlone = former.every((other) => other === state || other.since.getTime() !== state.since.getTime());
    return isAlone && isGood(state) ? [{ from: state.since, until }] : [];
  });
}

/** Whether something was made in one of these periods; at their very end it was not. */
export function isWithin(periods: readonly Period[], time: Date): boolean {
  return periods.some(({ from, until }) => time >= from && time < until);
}
