import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { longestFirst } from './test/support/longest-first.mjs';

const FILES = ['test/{unit,vectors,contract,http}/**/*.test.ts', 'packages/*/test/**/*.test.ts', 'test/{architecture,language}.test.ts'];

// Suites over HTTP run on SQLite here and on PostgreSQL in `npm run test:postgres`; suites of the store run on both.
process.env.TEST_SERVED_DATABASE ??= 'sqlite';

/** The fast tier: `npm test`. Nothing in it depends on the time of a clock. */
export default {
  spec: longestFirst(globSync(FILES)),
  require: ['test/support/setup.ts', 'test/support/whole-run.ts'],
  parallel: true,
  // Most objects of a test die young: fewer collections save a twentieth of the processor time.
  'node-option': ['max-semi-space-size=32'],
  jobs: availableParallelism(),
  // It ends what hangs. No test takes nearly as long, so that a busy machine fails none.
  timeout: 180_000,
  exit: true,
};
