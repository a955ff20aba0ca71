import { setTimeout as sleep } from 'node:timers/promises';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import { stepsOf } from '../contract/store/steps.ts';
import { type RaceKeys, race } from './races.ts';

/** One of two processes on the same database: runs the race at a given time and prints its result. */
export type Assignment = {
  readonly url: string;
  readonly masterSecret: string;
  readonly track: RaceKeys;
  readonly count: number;
  readonly runner: number;
  /** Milliseconds since the epoch. */
  readonly startsAt: number;
};

const assignment: Assignment = JSON.parse(process.argv[2] ?? '');
const { url, masterSecret, track, count, runner, startsAt } = assignment;
const store = await OrmStore.open({ url, poolSize: 10 }, new MasterCipher({ masterSecrets: [masterSecret] }));
await stepsOf(store, track.tenantId).state();
await sleep(Math.max(0, startsAt - Date.now()));
const result = await race(store, track, count, runner);
console.log(JSON.stringify({ ...result, late: Math.max(0, Date.now() - startsAt) }));
await store.close();
