import { SYSTEM } from '../../domain/audit/audit-entry.ts';
import { nextTermNumber, positionOf } from '../../domain/rewinds/term.ts';
import type { FenceStep, Fencing } from '../ports/fencing.ts';
import type { Store } from '../ports/store.ts';
import type { Terms } from '../ports/terms.ts';
import type { Witness } from '../ports/witness.ts';
import { readHistory } from './assert-not-rewound.ts';
import { stopOtherProcesses } from './stop-other-processes.ts';

type Ports = {
  readonly store: Pick<Store, 'forService' | 'maintenance'>;
  readonly terms: Terms;
  readonly fencing: Fencing;
  readonly witness: Witness;
  readonly pause: (milliseconds: number) => Promise<unknown>;
};

type Options = {
  readonly address: string;
  /** Also without evidence of a rollback. */
  readonly isForced: boolean;
  /** Maximum number of lost versions per trust list; estimated from the elapsed time by default. */
  readonly lostReleases?: number;
  readonly report: (line: string) => void;
};

const BATCH = 2_000;
/** Upper bound of the signing rate of one list. */
const VERSIONS_PER_SECOND = 1;
const SPARE_VERSIONS = 1_000;
/** Maximum of the database column. */
const MAX_NUMBER = 2 ** 31 - 1;

/**
 * Invalidates everything that was issued before: a database that was rolled back cannot issue forgotten values again. The operation can be
 * interrupted and repeated.
 * @returns false, with nothing changed, when there is no evidence of a rollback.
 */
export async function fence(ports: Ports, options: Options): Promise<boolean> {
  const { store, terms, fencing, witness } = ports;
  const { address, isForced, report } = options;
  await terms.begin();
  const { history, suspicion, sightings } = await readHistory({ ...ports, report }, address, { isAsking: !isForced });
  const [newest] = history.terms;
  if (newest === undefined || (suspicion === undefined && !isForced)) return false;
  if (suspicion !== undefined) report(suspicion.finding);
  await stopOtherProcesses(terms, newest, ports.pause);
  const now = await store.maintenance.time();
  for (const step of fencing.steps) report(`${step.name}: ${await runToEnd(step, now)}`);
  let { next: nextExpiry } = await store.maintenance.expireSessions(now, BATCH);
  while (nextExpiry !== undefined) ({ next: nextExpiry } = await store.maintenance.expireSessions(now, BATCH, { after: nextExpiry }));
  const listFloor = await listFloorOf(ports, options, newest.beganAt, now);
  report(`sequence numbers of trust lists continue from ${listFloor + 1}`);
  const number = nextTermNumber(history, Math.max(0, ...sightings.map(({ term }) => term)));
  const changes = [{ member: 'term', before: newest.number, after: number }];
  await store.forService(async ({ audit }) => audit.note({ action: 'fenced', kind: 'audit-log', target: 'chain', changes }), {
    by: SYSTEM,
  });
  if (!(await terms.open({ after: newest.number, number, how: 'fenced', listFloor })))
    throw new Error('the database began another term concurrently; run it again');
  const [newTerm] = (await terms.read()).terms;
  if (newTerm !== undefined) await witness.begin({ ...positionOf(newTerm), address });
  return true;
}

async function runToEnd(step: FenceStep, now: Date): Promise<number> {
  let done = 0;
  let { nextCursor: cursor, ...firstResult } = await step.run(now, BATCH);
  done += firstResult.done;
  while (cursor !== undefined) {
    const result = await step.run(now, BATCH, cursor);
    done += result.done;
    cursor = result.nextCursor;
  }
  return done;
}

/** @returns the highest number that a lost version may have, estimated from the time in which it was published. */
async function listFloorOf({ fencing }: Ports, { lostReleases }: Options, beganAt: Date, now: Date): Promise<number> {
  const { number, at: publishedAt = beganAt } = await fencing.lastListRelease();
  const seconds = Math.max(0, Math.ceil((now.getTime() - publishedAt.getTime()) / 1000));
  const floor = number + (lostReleases ?? SPARE_VERSIONS + seconds * VERSIONS_PER_SECOND);
  if (floor >= MAX_NUMBER) throw new Error('trust lists cannot have such high sequence numbers; set --lost-releases');
  return floor;
}
