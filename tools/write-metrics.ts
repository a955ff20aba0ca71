import { readFileSync, writeFileSync } from 'node:fs';
import { describeMetrics } from './describe-metrics.ts';

/** `npm run docs:metrics`: writes the table of docs/monitoring.md anew. */
const file = new URL('../docs/monitoring.md', import.meta.url);
const [begin, end] = ['<!-- metrics -->\n', '<!-- /metrics -->'];
const text = readFileSync(file, 'utf8');
const [before] = text.split(begin);
const [, after] = text.split(end);
writeFileSync(file, `${before}${begin}${describeMetrics()}\n${end}${after}`);
