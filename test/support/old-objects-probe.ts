import { getHeapSpaceStatistics } from 'node:v8';

/** Loaded into a service: collects garbage on request and reports the bytes of the old generation. */
process.on('message', (message) => {
  if (message === 'collect') globalThis.gc?.();
  const old = getHeapSpaceStatistics().filter(({ space_name }) => /^(?:old|trusted)_space$/.test(space_name));
  process.send?.(old.reduce((sum, { space_used_size }) => sum + space_used_size, 0));
});
process.channel?.unref();
