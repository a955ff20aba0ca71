import type { Settings } from './settings.ts';

/** With fewer connections, requests of one worker would wait for each other. */
const MIN_POOL = 4;
/** MiB that one worker needs so that one address can send the largest response of a wallet: an eighth is 2.5 MiB. */
const MIN_BODY_MEMORY = 20;

/**
 * The settings of one worker: its share of the limits of the whole service. Caches are not divided, since each worker serves all tenants;
 * nor are calls per minute, since a caller with one connection always reaches the same worker and would be rejected too early.
 */
export function shareOfWorker(settings: Settings): Settings {
  const part = (number: number, minimum: number) => Math.min(number, Math.max(minimum, Math.ceil(number / settings.WORKERS)));
  return Object.freeze({
    ...settings,
    DATABASE_POOL: part(settings.DATABASE_POOL, MIN_POOL),
    MAX_CONNECTIONS: part(settings.MAX_CONNECTIONS, 1),
    BODY_MEMORY: part(settings.BODY_MEMORY, MIN_BODY_MEMORY),
  });
}
