import { type Case, evaluate, type Safe } from './case.ts';

type CaseDefaults = { readonly section: string; readonly why: string; readonly safe: Safe };

/** Cases that are rejected by the same section for the same reason, by name. */
export const table = <World>(common: CaseDefaults, runs: Readonly<Record<string, Case<World>['run']>>): readonly Case<World>[] =>
  Object.entries(runs).map(([name, run]) => ({ name, run, ...common }));

/**
 * Marks a case that a target should reject but may accept by the specifications: it is reported, and not open. A target that fails on it is
 * open nevertheless.
 */
export const asAdvice = <World>(testCase: Case<World>): Case<World> => ({
  ...testCase,
  async run(world) {
    const answerOrResult = await testCase.run(world);
    const verdict = 'outcome' in answerOrResult ? answerOrResult : evaluate(answerOrResult, testCase.safe);
    const isTaken = verdict.outcome === 'open' && !/^(breaks|hangs)/.test(verdict.seen);
    return isTaken ? { outcome: 'unclear', seen: `${verdict.seen}, which is allowed` } : verdict;
  },
});
