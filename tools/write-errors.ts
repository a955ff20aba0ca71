import { readFileSync, writeFileSync } from 'node:fs';
import { describeErrors } from './describe-errors.ts';

/** `npm run docs:errors`: writes the tables of docs/reference/errors.md from `domain/shared/error-reference.ts`. */
const file = new URL('../docs/reference/errors.md', import.meta.url);
const MARKS = ['<!-- errors -->\n', '\n<!-- /errors -->'] as const;

const [begin, end] = MARKS;
const text = readFileSync(file, 'utf8');
const [head] = text.split(begin);
const [, foot] = text.split(end);
writeFileSync(file, `${head}${begin}${describeErrors()}${end}${foot}`);
