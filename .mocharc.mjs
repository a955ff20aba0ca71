import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** The files that take longest start first, so that none of them runs alone in the end. */
const LONGEST = [];

const files = globSync(['test/{unit,vectors,contract,http}/**/*.test.ts', 'test/architecture.test.ts']);
const place = (file) => (LONGEST.includes(file) ? LONGEST.indexOf(file) : LONGEST.length);

export default {
  spec: files.toSorted((one, other) => place(one) - place(other) || one.localeCompare(other)),
  require: ['test/support/setup.ts', 'test/support/whole-run.ts'],
  parallel: true,
  jobs: availableParallelism() + 1,
  timeout: 20_000,
  exit: true,
};
