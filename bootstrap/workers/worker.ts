import type { Socket } from 'node:net';
import { readSettings } from '../../config/settings.ts';
import { shareOfWorker } from '../../config/worker-share.ts';
import { settleAfterStart } from '../start/after-start.ts';
import { environmentWithSecrets, namesFromFile } from '../start/first-start.ts';
import type { RunningService } from '../start/service.ts';
import { startFailureMessage } from '../start/start-failure.ts';
import { GRACE_MS, NOTICE_MS } from '../start/stopping.ts';
import { FIRST_WORKER, type FromWorker, type ToWorker } from './messages.ts';
import { PendingRequests } from './pending-requests.ts';

/** Longer than the supervisor waits for each worker. */
const METRICS_MS = 5_000;

/** The program of a worker: the service without a port of its own. */
let service: RunningService | undefined;
let isStopping = false;
const metrics = new PendingRequests<string>(METRICS_MS);

// A terminal or a service manager signals all processes of the service; the supervisor decides what happens.
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => {});
process.on('message', (message: ToWorker, connection: Socket | undefined) => {
  if (message.type === 'stop') void stop();
  if (message.type === 'measure') void measure(message.id);
  if (message.type === 'metrics') metrics.onResponse(message.id, message.text);
  if (message.type === 'drain') service?.drain();
  if (message.type === 'connection') take(connection);
});
// Without its supervisor the worker gets no more connections.
process.once('disconnect', () => void stop());

try {
  const environment = environmentWithSecrets(process.env);
  const settings = shareOfWorker(readSettings(environment, namesFromFile(process.env, environment)));
  const { startService } = await import('../start/service.ts');
  const role = { isFirst: process.argv[2] === FIRST_WORKER, listens: false, readMetrics };
  service = await startService(settings, environment, role);
  settleAfterStart();
  sendToSupervisor({ type: 'ready' });
} catch (error) {
  sendToSupervisor({ type: 'failed', message: startFailureMessage(error) }, () => process.exit(1));
}

function take(connection: Socket | undefined): void {
  // The confirmation is sent before the connection is read: until then another worker can get it.
  sendToSupervisor({ type: 'taken' });
  if (connection !== undefined) service?.take(connection);
}

async function measure(id: number): Promise<void> {
  sendToSupervisor({ type: 'measured', id, metrics: (await service?.measure()) ?? [] });
}

/** @returns the metrics of all workers. @throws Error when the supervisor does not respond. */
async function readMetrics(): Promise<string> {
  const text = await metrics.request((id) => sendToSupervisor({ type: 'read-metrics', id }));
  if (text === undefined) throw new Error('the supervisor has no metrics');
  return text;
}

async function stop(): Promise<void> {
  if (isStopping) return;
  isStopping = true;
  try {
    await service?.close(GRACE_MS, NOTICE_MS);
    process.exit(0);
  } catch {
    process.exit(1);
  }
}

function sendToSupervisor(message: FromWorker, then: () => void = () => {}): void {
  // A supervisor that has ended needs no message.
  if (process.connected) process.send?.(message, undefined, {}, then);
  else then();
}
