import { type Case, judge, type Safe } from './case.ts';

type Common = { readonly section: string; readonly why: string; readonly safe: Safe };

/** Cases that are refused by the same section for the same reason, by their names. */
export const table = <World>(common: Common, runs: Readonly<Record<string, Case<World>['run']>>): readonly Case<World>[] =>
  Object.entries(runs).map(([name, run]) => ({ name, run, ...common }));

/**
 * For what a target had better refuse, and may take as the specifications stand: it is looked at, and nothing is open. A
 * target that breaks over it is open all the same.
 */
export const advised = <World>(one: Case<World>): Case<World> => ({
  ...one,
  async run(world) {
    const came = await one.run(world);
    const verdict = 'outcome' in came ? came : judge(came, one.safe);
    const isTaken = verdict.outcome === 'open' && !/^(breaks|hangs)/.test(verdict.seen);
    return isTaken ? { outcome: 'unclear', seen: `${verdict.seen}, which is allowed` } : verdict;
  },
});
