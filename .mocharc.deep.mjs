import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import fast from './.mocharc.mjs';

/** The files that take longest start first, so that none of them runs alone at the end. */
const LONGEST = [
  'test/attack/broken-copy.test.ts',
  'test/deep/races-postgres.test.ts',
  'test/deep/attack-tool.test.ts',
  'test/deep/docs-key-stores.test.ts',
  'test/deep/events.test.ts',
  'test/faults/faults.test.ts',
  'test/deep/rabbitmq.test.ts',
  'test/deep/key-store-outages.test.ts',
  'test/deep/key-stores.test.ts',
  'test/deep/hanging-database.test.ts',
  'test/deep/races-sqlite.test.ts',
  'test/fuzz/fuzz.test.ts',
  'test/deep/store-races.test.ts',
  'test/deep/fault-sweep.test.ts',
];

const files = globSync('test/{deep,attack,faults,fuzz}/**/*.test.ts');
const place = (file) => (LONGEST.includes(file) ? LONGEST.indexOf(file) : LONGEST.length);

/** The deep tier: `npm run test:deep`. Races, outages, limits of time and memory, executed documentation. */
export default {
  ...fast,
  spec: files.toSorted((one, other) => place(one) - place(other) || one.localeCompare(other)),
  jobs: availableParallelism(),
};
