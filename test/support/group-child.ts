import { writeSync } from 'node:fs';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { aSession } from '../contract/store/builders.ts';

/** Creates sessions concurrently, and prints the outcome of each as soon as it is known. */
export type GroupAssignment = {
  readonly url: string;
  readonly masterSecret: string;
  readonly tenantId: TenantId;
  /** Number of rounds of 40 callers. With `killsItself` the process dies after the first result of the last round. */
  readonly rounds: number;
  readonly killsItself: boolean;
};

const { url, masterSecret, tenantId, rounds, killsItself }: GroupAssignment = JSON.parse(process.argv[2] ?? '');
const store = await OrmStore.open({ url, poolSize: 2 }, new MasterCipher({ masterSecrets: [masterSecret] }));
const report = (outcome: string, id: string) => writeSync(1, `${outcome} ${id}\n`);

for (let round = 1; round <= rounds; round++) {
  await Promise.all(
    Array.from({ length: 40 }, async () => {
      const session = aSession(tenantId);
      const change = { opens: { session } };
      try {
        const { done } = await store.commit(tenantId, change, session.createdAt);
        report(done ? 'done' : 'refused', session.id);
      } catch (error) {
        report((error as Error).constructor.name, session.id);
      }
      if (killsItself && round === rounds) process.kill(process.pid, 'SIGKILL');
    }),
  );
}
process.exit(0);
