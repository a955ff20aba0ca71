import type { Settings } from './settings.ts';

/** Fewer connections than this and requests of one worker wait for each other. */
const LEAST_POOL = 4;
/** MiB that one worker needs so that one address can send the largest response of a wallet: an eighth is 2.5 MiB. */
const LEAST_BODY_MEMORY = 20;

/**
 * The settings of one of several workers: of what the whole service may open or hold it has its part. Not divided are
 * caches, since each worker serves all tenants, and calls per minute, since a caller with one connection has one worker
 * and would be refused long before the number that is set.
 */
export function shareOfWorker(settings: Settings): Settings {
  const part = (number: number, least: number) => Math.min(number, Math.max(least, Math.ceil(number / settings.WORKERS)));
  return Object.freeze({
    ...settings,
    DATABASE_POOL: part(settings.DATABASE_POOL, LEAST_POOL),
    MAX_CONNECTIONS: part(settings.MAX_CONNECTIONS, 1),
    BODY_MEMORY: part(settings.BODY_MEMORY, LEAST_BODY_MEMORY),
  });
}
