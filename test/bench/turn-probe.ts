import { appendFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

/**
 * Loaded by the service before its main program: writes each turn of the main thread that computed for long to a file, as the time
 * in milliseconds and the milliseconds of processor time. Processor time does not grow with what else the machine does.
 */
const INTERVAL_MS = 2;
const MIN_MS = 5;
const file = process.env['TURN_FILE'];

if (isMainThread && file !== undefined) {
  const processorMs = () => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1_000;
  };
  let lastTurn = processorMs();
  setInterval(() => {
    const now = processorMs();
    if (now - lastTurn >= MIN_MS) appendFileSync(file, `${Date.now()} ${(now - lastTurn).toFixed(1)}\n`);
    lastTurn = processorMs();
  }, INTERVAL_MS).unref();
}
