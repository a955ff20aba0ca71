import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Loaded into a process of the service. On SIGUSR2 it sets the clock by as many milliseconds as `clock` in `DATA_FOLDER` says, and
 * writes into `inside.json` what it holds after a collection.
 */
const folder = process.env['DATA_FOLDER'] ?? '';
const RealDate = Date;
let offset = 0;

class ShiftedDate extends RealDate {
  constructor(...parameters: [] | [number | string | Date]) {
    if (parameters.length === 0) super(RealDate.now() + offset);
    else super(...(parameters as [number]));
  }

  static override now(): number {
    return RealDate.now() + offset;
  }
}

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

process.on('SIGUSR2', () => {
  try {
    offset = Number(readFileSync(join(folder, 'clock'), 'utf8'));
    globalThis.Date = ShiftedDate as DateConstructor;
  } catch {
    // Its clock is left alone.
  }
  collect();
  const { heapUsed, external } = process.memoryUsage();
  const handles = process.getActiveResourcesInfo().length;
  writeFileSync(join(folder, 'inside.json'), JSON.stringify({ held: heapUsed + external, handles }));
});
