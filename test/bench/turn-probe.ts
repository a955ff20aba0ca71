import { appendFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

/**
 * Preloaded into the service: writes each long turn of the main thread to a file, as time and processor time in
 * milliseconds. Processor time is independent of other load.
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
