import { globSync } from 'node:fs';
import fast from './.mocharc.mjs';
import { longestFirst } from './test/support/longest-first.mjs';

/** The deep tier: `npm run test:deep`. Races, outages, commands, limits of time and memory, executed documentation. */
// Limits of memory are measured with the defaults of Node.
export default { ...fast, 'node-option': [], spec: longestFirst(globSync('test/{deep,attack,faults,fuzz}/**/*.test.ts')) };
