import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { databases } from '../support/databases.ts';
import { WalletProvider } from '../support/wallet-provider.ts';
import { openKeyStore } from './key-store.ts';
import { databaseName } from './meter.ts';
import { freePort, type Instruments, ServiceProcess } from './service-process.ts';
import { WalletsProcess } from './wallets-process.ts';
import type { DatabaseKind } from './world.ts';

/** Starts the participants. The service does not run yet. */
export type Cast = {
  /** Address of the database. */
  readonly url: string;
  readonly service: ServiceProcess;
  readonly wallets: WalletsProcess;
  readonly provider: WalletProvider;
};

/**
 * Works with a fresh database of the kind, and leaves nothing behind.
 * @param wallets may have worked in another cast.
 * @returns undefined when there is no such database here.
 */
export async function withCast<T>(
  kind: DatabaseKind,
  instruments: Instruments,
  work: (cast: Cast) => Promise<T>,
  wallets = new WalletsProcess(),
): Promise<T | undefined> {
  const database = await databases()
    .find(({ name }) => name === kind)
    ?.openEmpty();
  if (database === undefined) {
    wallets.stop();
    return undefined;
  }
  const { url } = database;
  const dataFolder = mkdtempSync(join(tmpdir(), 'vidimus-bench-'));
  /** Cleanups of the started participants, the last first. */
  const cleanups: (() => unknown)[] = [
    () => database.drop(),
    () => rmSync(dataFolder, { recursive: true, force: true }),
    () => wallets.stop(),
  ];
  const end = async () => {
    for (let stopLast = cleanups.pop(); stopLast !== undefined; stopLast = cleanups.pop()) await stopLast();
  };
  onStage.add(end);
  // The package that starts PostgreSQL would end the process at once.
  for (const signal of SIGNALS) process.removeAllListeners(signal).on(signal, leave);
  let service: ServiceProcess | undefined;
  try {
    const keys = await openKeyStore(instruments.kms);
    if (keys === undefined) throw new Error(`there is no server for keys at ${instruments.kms} here`);
    cleanups.push(() => keys.close());
    if (instruments.kms !== 'local') {
      for (const { what, ms } of keys.alone) console.log(`${keys.name}: ${what}: ${ms.toFixed(3)} ms`);
    }
    const environment = { ...keys.environment, ...variantEnvironment(instruments, url) };
    const startedService = new ServiceProcess(await freePort(), { ...instruments, ...{ databaseUrl: url, dataFolder, environment } });
    service = startedService;
    cleanups.push(() => startedService.stop());
    const provider = await WalletProvider.start();
    cleanups.push(() => provider.close());
    return await work({ url, service, wallets, provider });
  } catch (error) {
    // After an interruption, errors of the cleanup are not reported.
    if (isLeaving) return await new Promise<never>(() => {});
    if (service !== undefined && service.errors !== '') console.log(`the service wrote:\n${service.errors}`);
    throw error;
  } finally {
    if (!isLeaving) {
      await end();
      onStage.delete(end);
      if (onStage.size === 0) for (const signal of SIGNALS) process.off(signal, leave);
    }
  }
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;
const onStage = new Set<() => Promise<void>>();
let isLeaving = false;

/** Removes the resources of a measurement, also on interruption. */
async function leave(): Promise<void> {
  if (isLeaving) return;
  isLeaving = true;
  console.log('stopped; what was made for the measurement is removed');
  // The one that was made last rests on those before it.
  for (const end of [...onStage].toReversed()) await end().catch((error: Error) => console.error(error.message));
  process.exit(130);
}

function variantEnvironment({ variant }: Instruments, url: string): Readonly<Record<string, string>> {
  const database = url.startsWith('sqlite:') ? '' : databaseName(url);
  const entries = Object.entries(variant?.environment ?? {});
  return Object.fromEntries(entries.map(([name, value]) => [name, value.replaceAll('{database}', database)]));
}
