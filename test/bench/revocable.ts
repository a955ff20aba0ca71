import type { Cast } from './cast.ts';
import { preloadRevocable } from './preload.ts';
import type { ScenarioName } from './scenarios.ts';
import { addStatusList } from './tenant-setup.ts';
import { LIST_CAPACITY, type World } from './world.ts';

/** More than are revoked in a second. */
const PER_SECOND: Partial<Record<ScenarioName, number>> = { revoke: 5_000, 'revoke-read': 3_000 };

/** Gives the wallets credentials for what each of the scenarios revokes in so many milliseconds. */
export async function makeRevocable(
  { url, wallets }: Pick<Cast, 'url' | 'wallets'>,
  world: World,
  scenarios: readonly ScenarioName[],
  eachMs: number,
): Promise<void> {
  const perSecond = scenarios.reduce((sum, name) => sum + (PER_SECOND[name] ?? 0), 0);
  for (let missingEntries = (perSecond * eachMs) / 1000; missingEntries > 0; missingEntries -= LIST_CAPACITY) {
    const list = await addStatusList(world);
    const count = Math.ceil(Math.min(missingEntries, LIST_CAPACITY));
    await preloadRevocable(url, list.id, count);
    await wallets.addRevocable(list, count);
  }
}
