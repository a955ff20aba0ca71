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

/** Who plays. The service does not run yet. */
export type Cast = {
  /** Of the database. */
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
  const keys = await openKeyStore(instruments.kms);
  if (keys === undefined) throw new Error(`there is no server for keys at ${instruments.kms} here`);
  if (instruments.kms !== 'local') {
    for (const { what, ms } of keys.alone) console.log(`${keys.name}: ${what}: ${ms.toFixed(3)} ms`);
  }
  const environment = { ...keys.environment, ...environmentOf(instruments, url) };
  const service = new ServiceProcess(await freePort(), {
    ...instruments,
    ...{ databaseUrl: url, dataFolder, environment },
  });
  const provider = await WalletProvider.start();
  try {
    return await work({ url, service, wallets, provider });
  } catch (error) {
    if (service.errors !== '') console.log(`the service wrote:\n${service.errors}`);
    throw error;
  } finally {
    wallets.stop();
    await provider.close();
    await service.stop();
    await keys.close();
    await database.drop();
    rmSync(dataFolder, { recursive: true, force: true });
  }
}

function environmentOf({ variant }: Instruments, url: string): Readonly<Record<string, string>> {
  const database = url.startsWith('sqlite:') ? '' : databaseName(url);
  const entries = Object.entries(variant?.environment ?? {});
  return Object.fromEntries(entries.map(([name, value]) => [name, value.replaceAll('{database}', database)]));
}
