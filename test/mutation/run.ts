import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { evaluateReport, type ListedSurvivor, type Report } from './judge.ts';

/**
 * `npm run mutation [-- options of Stryker]`: sets each condition of the domain to true and to false and runs the tests.
 * Prints the share of killed mutants; `survivors.json` lists the accepted survivors with reasons. Fails below 95 %, and for
 * an unlisted survivor.
 */
const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const options = process.argv.slice(2).filter((option) => option !== '--');

const stryker = `${FOLDER}node_modules/@stryker-mutator/core/bin/stryker.js`;
const { status } = spawnSync(process.execPath, [stryker, 'run', `${FOLDER}stryker.config.json`, ...options], { stdio: 'inherit' });
if (status !== 0) process.exit(status ?? 1);

const readJson = <T>(name: string) => JSON.parse(readFileSync(FOLDER + name, 'utf8')) as T;
const listedSurvivors = existsSync(`${FOLDER}survivors.json`) ? readJson<readonly ListedSurvivor[]>('survivors.json') : [];
const { lines, isGood } = evaluateReport(readJson<Report>('report.json'), listedSurvivors);
console.log(lines.join('\n'));
process.exit(isGood ? 0 : 1);
