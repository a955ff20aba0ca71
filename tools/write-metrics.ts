import { readFileSync, writeFileSync } from 'node:fs';
import { describeMetrics } from './describe-metrics.ts';

/** `npm run docs:metrics`: writes the table of docs/reference/metrics.md again. */
const file = new URL('../docs/reference/metrics.md', import.meta.url);
const [begin, end] = ['<!-- metrics -->\n', '<!-- /metrics -->'];
const text = readFileSync(file, 'utf8');
const [head] = text.split(begin);
const [, foot] = text.split(end);
writeFileSync(file, `${head}${begin}${describeMetrics()}\n${end}${foot}`);
