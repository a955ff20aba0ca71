import { globSync, readFileSync } from 'node:fs';
import fast from './.mocharc.mjs';
import { longestFirst } from './test/support/longest-first.mjs';

process.env.TEST_SERVED_DATABASE = 'postgres';
const runsOnDatabases = (file) => readFileSync(file, 'utf8').includes('httpDatabases()');

/** `npm run test:postgres`: suites over HTTP whose titles name the database, on PostgreSQL. */
export default { ...fast, spec: longestFirst(globSync('test/http/*.test.ts').filter(runsOnDatabases)), grep: 'postgres' };
