import { SYSTEM } from '../../domain/audit/audit-entry.ts';
import { nextNumber, positionOf } from '../../domain/rewinds/term.ts';
import type { FenceStep, Fencing } from '../ports/fencing.ts';
import type { Store } from '../ports/store.ts';
import type { Terms } from '../ports/terms.ts';
import type { Witness } from '../ports/witness.ts';
import { observe } from './assert-not-rewound.ts';
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
  /** Also where nothing says that the database went back. */
  readonly isForced: boolean;
  /** Releases of one trust list that may be lost; as many as can be unless stated. */
  readonly lostReleases?: number;
  readonly tell: (line: string) => void;
};

const BATCH = 2_000;
/** Nobody signs the same list more often. */
const RELEASES_PER_SECOND = 1;
const SPARE_RELEASES = 1_000;
/** Of the column. */
const MAX_NUMBER = 2 ** 31 - 1;

/**
 * Sees to it that nothing counts that was handed out before: what a database has forgotten since its backup cannot be given
 * away once more. It can be broken off and run again.
 * @returns false when nothing says that the database went back, and nothing was done.
 */
export async function fence(ports: Ports, options: Options): Promise<boolean> {
  const { store, terms, fencing, witness } = ports;
  const { address, isForced, tell } = options;
  await terms.begin();
  const { history, suspicion, sightings } = await observe({ ...ports, tell }, address, { isAsking: !isForced });
  const [newest] = history.terms;
  if (newest === undefined || (suspicion === undefined && !isForced)) return false;
  if (suspicion !== undefined) tell(suspicion.finding);
  await stopOtherProcesses(terms, newest, ports.pause);
  const now = await store.maintenance.time();
  for (const step of fencing.steps) tell(`${step.name}: ${await runWhole(step, now)}`);
  let { next } = await store.maintenance.expireSessions(now, BATCH);
  while (next !== undefined) ({ next } = await store.maintenance.expireSessions(now, BATCH, { after: next }));
  const listFloor = await listFloorOf(ports, options, newest.beganAt, now);
  tell(`numbers of trust lists go on from ${listFloor + 1}`);
  const number = nextNumber(history, Math.max(0, ...sightings.map(({ term }) => term)));
  const changes = [{ member: 'term', before: newest.number, after: number }];
  await store.forService(async ({ audit }) => audit.note({ action: 'fenced', kind: 'audit-log', target: 'chain', changes }), {
    by: SYSTEM,
  });
  if (!(await terms.open({ after: newest.number, number, how: 'fenced', listFloor })))
    throw new Error('the database began another term meanwhile; run it again');
  const [begun] = (await terms.read()).terms;
  if (begun !== undefined) await witness.begin({ ...positionOf(begun), address });
  return true;
}

async function runWhole(step: FenceStep, now: Date): Promise<number> {
  let done = 0;
  let { place, ...first } = await step.run(now, BATCH);
  done += first.done;
  while (place !== undefined) {
    const next = await step.run(now, BATCH, place);
    done += next.done;
    place = next.place;
  }
  return done;
}

/** @returns the highest number that a list may have had that is lost now, by the time in which it can have happened. */
async function listFloorOf({ fencing }: Ports, { lostReleases }: Options, beganAt: Date, now: Date): Promise<number> {
  const { number, at = beganAt } = await fencing.lastListRelease();
  const seconds = Math.max(0, Math.ceil((now.getTime() - at.getTime()) / 1000));
  const floor = number + (lostReleases ?? SPARE_RELEASES + seconds * RELEASES_PER_SECOND);
  if (floor >= MAX_NUMBER) throw new Error('trust lists cannot have such high numbers; state --lost-releases');
  return floor;
}
