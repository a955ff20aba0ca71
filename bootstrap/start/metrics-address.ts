import type { Settings } from '../../config/settings.ts';
import type { Closers } from '../wiring/closers.ts';

type Read = () => Promise<string>;

/** What the service itself answers at `/metrics`; undefined where it does not. */
export function servedMetrics({ METRICS_TOKEN: token }: Settings, read: Read | undefined) {
  return token === undefined || read === undefined ? undefined : { token, read: shared(read) };
}

/** Opens the address for metrics alone, where there is one. */
export async function openMetricsServer(
  { METRICS_ADDRESS: address }: Settings,
  read: Read | undefined,
  closers: Pick<Closers, 'add'>,
): Promise<void> {
  if (address === undefined || read === undefined) return;
  const { MetricsServer } = await import('../../adapters/system/metrics/metrics-server.ts');
  const server = await MetricsServer.open(address, shared(read));
  closers.add(() => server.close());
}

/** Who asks at the same time is given the same: nobody can make work with it. */
function shared(read: Read): Read {
  let running: Promise<string> | undefined;
  return () => {
    running ??= read().finally(() => {
      running = undefined;
    });
    return running;
  };
}
