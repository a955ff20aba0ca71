import type { Socket } from 'node:net';
import { readSettings } from '../../config/settings.ts';
import { shareOfWorker } from '../../config/worker-share.ts';
import { settleAfterStart } from '../start/after-start.ts';
import { keptEnvironment, namesFromFile } from '../start/first-start.ts';
import type { RunningService } from '../start/service.ts';
import { startFailure } from '../start/start-failure.ts';
import { GRACE_MS, NOTICE_MS } from '../start/stopping.ts';
import { FIRST, type FromWorker, type ToWorker } from './messages.ts';
import { Questions } from './questions.ts';

/** Longer than the supervisor waits for each worker. */
const METRICS_MS = 5_000;

/** The program of a worker: the service without a port of its own. */
let service: RunningService | undefined;
let isStopping = false;
const metrics = new Questions<string>(METRICS_MS);

// A terminal, or a service manager, sends signals to all processes of the service; the supervisor says what comes of them.
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => {});
process.on('message', (message: ToWorker, connection: Socket | undefined) => {
  if (message.type === 'stop') void stop();
  if (message.type === 'measure') void measure(message.id);
  if (message.type === 'metrics') metrics.answered(message.id, message.text);
  if (message.type === 'drain') service?.drain();
  if (message.type === 'connection') take(connection);
});
// Without its supervisor it gets no connections any more.
process.once('disconnect', () => void stop());

try {
  const environment = keptEnvironment(process.env);
  const settings = shareOfWorker(readSettings(environment, namesFromFile(process.env, environment)));
  const { startService } = await import('../start/service.ts');
  const role = { isFirst: process.argv[2] === FIRST, listens: false, readMetrics };
  service = await startService(settings, environment, role);
  settleAfterStart();
  tell({ type: 'ready' });
} catch (error) {
  tell({ type: 'failed', message: startFailure(error) }, () => process.exit(1));
}

function take(connection: Socket | undefined): void {
  // Before anything is read of it: until then another worker can have it.
  tell({ type: 'taken' });
  if (connection !== undefined) service?.take(connection);
}

async function measure(id: number): Promise<void> {
  tell({ type: 'measured', id, metrics: (await service?.measure()) ?? [] });
}

/** Of all workers. @throws Error when the supervisor does not say. */
async function readMetrics(): Promise<string> {
  const text = await metrics.ask((id) => tell({ type: 'read-metrics', id }));
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

function tell(message: FromWorker, then: () => void = () => {}): void {
  // To a supervisor that ended nothing needs to be said.
  if (process.connected) process.send?.(message, undefined, {}, then);
  else then();
}
