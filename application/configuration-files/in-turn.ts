import { randomUUID } from 'node:crypto';
import type { Log } from '../ports/log.ts';
import type { Store } from '../ports/store.ts';

const LEASE = 'import-folder';
/** Longer than a process is busy with something else. */
const LEASE_SECONDS = 10;
const WAIT_MS = 10 * 60 * 1000;
const POLL_MS = 250;

type Ports = { readonly store: Store; readonly log: Log };

/** Runs `work` while no other process does. A process that dies gives way when its lease ends. */
export async function inTurn({ store, log }: Ports, work: () => Promise<void>): Promise<void> {
  const holder = randomUUID();
  const { maintenance } = store;
  const hold = async (seconds = LEASE_SECONDS) =>
    maintenance.tryLease(LEASE, holder, await maintenance.time(), seconds);
  const deadline = performance.now() + WAIT_MS;
  for (let isFirst = true; !(await hold()); isFirst = false) {
    if (isFirst) log.info('configuration folder: another process imports; waiting for it');
    if (performance.now() > deadline) throw new Error('another process is importing for too long');
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  const tryHold = (seconds?: number) =>
    hold(seconds).catch((error: unknown) => log.error('the lease of the import was not written', {}, error));
  const renewal = setInterval(() => void tryHold(), LEASE_SECONDS * 333);
  try {
    await work();
  } finally {
    clearInterval(renewal);
    await tryHold(0);
  }
}
