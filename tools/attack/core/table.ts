import type { Case, Safe } from './case.ts';

type Common = { readonly section: string; readonly why: string; readonly safe: Safe };

/** Cases that are refused by the same section for the same reason, by their names. */
export const table = <World>(
  common: Common,
  runs: Readonly<Record<string, Case<World>['run']>>,
): readonly Case<World>[] => Object.entries(runs).map(([name, run]) => ({ name, run, ...common }));
