import { readFileSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import mocha from 'mocha';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const TABLE = new URL('../durations.json', import.meta.url);
/** Faster files run in alphabetical order. */
const MIN_SECONDS = 3;

/**
 * `npm run test:durations`: writes `test/durations.json`, by which `.mocharc.mjs` and `.mocharc.deep.mjs` start the longest files
 * first, so that none of them runs alone at the end.
 */
export default class DurationReporter extends mocha.reporters.Spec {
  constructor(runner, options) {
    super(runner, options);
    const seconds = {};
    const add = ({ file, duration = 0 }) => {
      if (file === undefined) return;
      const name = relative(ROOT, file);
      seconds[name] = (seconds[name] ?? 0) + duration / 1000;
    };
    runner.on('test end', add);
    runner.on('hook end', add);
    runner.once('end', () => {
      // Files of the other tier keep their previous durations.
      const before = Object.entries(JSON.parse(readFileSync(TABLE, 'utf8'))).filter(([file]) => !(file in seconds));
      const longest = [...before, ...Object.entries(seconds)]
        .filter(([, each]) => each >= MIN_SECONDS)
        .toSorted(([, one], [, other]) => other - one)
        .map(([file, each]) => [file, Math.round(each)]);
      writeFileSync(TABLE, `${JSON.stringify(Object.fromEntries(longest), null, 2)}\n`);
    });
  }
}
