import { databases } from '../support/databases.ts';
import { describeRaces } from '../support/raced-services.ts';
import { SUITES } from './races/suites.ts';

for (const kind of databases().filter(({ name }) => name === 'sqlite')) describeRaces(kind, SUITES);
