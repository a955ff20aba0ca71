import { createRequire } from 'node:module';

/** Parts in an order in which each needs little beyond the previous ones. Loading all of them takes 50 ms of the main thread. */
export const UNDICI_PARTS = {
  connect: 'undici/lib/core/connect.js',
  request: 'undici/lib/core/request.js',
  api: 'undici/lib/api/index.js',
  connection: 'undici/lib/dispatcher/client-h1.js',
  client: 'undici/lib/dispatcher/client.js',
  pool: 'undici/lib/dispatcher/pool.js',
} as const;

/** The main file of undici also loads `fetch`, WebSocket, caches and mocks: 80 further files, which take 60 ms and 12 MB. */
export const loadUndici = createRequire(import.meta.url);

/** Loads the parts one by one, so that other requests run in between. */
export async function loadUndiciStepwise(): Promise<void> {
  for (const part of Object.values(UNDICI_PARTS)) {
    loadUndici(part);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
