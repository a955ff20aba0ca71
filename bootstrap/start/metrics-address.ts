import type { Settings } from '../../config/settings.ts';
import type { Closers } from '../wiring/closers.ts';

type ReadMetrics = () => Promise<string>;

/** @returns the token and the content of `/metrics`; undefined when the service has no such route. */
export function servedMetrics({ METRICS_TOKEN: token }: Settings, read: ReadMetrics | undefined) {
  return token === undefined || read === undefined ? undefined : { token, read: shared(read) };
}

/** Opens the separate address for metrics, if there is one. */
export async function openMetricsServer(
  { METRICS_ADDRESS: address }: Settings,
  read: ReadMetrics | undefined,
  closers: Pick<Closers, 'add'>,
): Promise<void> {
  if (address === undefined || read === undefined) return;
  const { MetricsServer } = await import('../../adapters/system/metrics/metrics-server.ts');
  const server = await MetricsServer.open(address, shared(read));
  closers.add(() => server.close());
}

/** Simultaneous calls share one result, so that callers cannot cause more work. */
function shared(read: ReadMetrics): ReadMetrics {
  let running: Promise<string> | undefined;
  return () => {
    running ??= read().finally(() => {
      running = undefined;
    });
    return running;
  };
}
