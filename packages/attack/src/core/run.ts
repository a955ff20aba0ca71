import { type Case, type Family, judge, type Outcome, printable } from './case.ts';
import { Skip } from './skip.ts';

/** Milliseconds for one case, with all of its calls. */
const CASE_MS = 120_000;

export type Result = {
  readonly family: string;
  readonly name: string;
  readonly section: string;
  readonly why: string;
  /** What a safe answer would have been. */
  readonly safe: string;
  readonly outcome: Outcome;
  readonly seen: string;
};

export type FamilyResult = {
  readonly family: string;
  readonly title: string;
  /** `skipped`: the target has no such thing. `not run`: the right flow did not succeed. */
  readonly state: 'run' | 'skipped' | 'not run';
  readonly reason: string;
  readonly results: readonly Result[];
};

/** One family: the right flow first, then each attack, then the right flow again. */
export async function runFamily<World>(family: Family<World>, world: World): Promise<FamilyResult> {
  const { id, title, control, cases } = family;
  try {
    await inTime(control(world));
  } catch (error) {
    const reason = reasonOf(error);
    const state = error instanceof Skip ? 'skipped' : 'not run';
    const results = state === 'skipped' ? cases.map((one) => resultOf(id, one, 'skipped', reason)) : [];
    return { family: id, title, state, reason, results };
  }
  const results: Result[] = [];
  for (const one of cases) results.push(await runCase(id, one, world));
  results.push(await stillWorks(id, control, world));
  return { family: id, title, state: 'run', reason: '', results };
}

async function runCase<World>(family: string, one: Case<World>, world: World): Promise<Result> {
  try {
    const came = await inTime(one.run(world));
    const { outcome, seen } = 'outcome' in came ? came : judge(came, one.safe);
    return resultOf(family, one, outcome, seen);
  } catch (error) {
    return resultOf(family, one, error instanceof Skip ? 'skipped' : 'unclear', reasonOf(error));
  }
}

/** An attack that leaves nobody served worked, whatever was answered to it. */
async function stillWorks<World>(family: string, control: Family<World>['control'], world: World): Promise<Result> {
  const one = {
    name: 'the right flow, after all of these',
    section: 'availability',
    why: 'attacks of strangers must not shut out others',
    safe: { status: [200] },
  };
  try {
    await control(world);
    return resultOf(family, one, 'held', 'succeeds');
  } catch (error) {
    return resultOf(family, one, error instanceof Skip ? 'skipped' : 'open', reasonOf(error));
  }
}

async function inTime<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('took too long')), CASE_MS);
  });
  try {
    return await Promise.race([work, over]);
  } finally {
    clearTimeout(timer);
  }
}

const reasonOf = (error: unknown): string => printable(error instanceof Error ? error.message : String(error));

function resultOf(
  family: string,
  { name, section, why, safe }: Pick<Case<never>, 'name' | 'section' | 'why' | 'safe'>,
  outcome: Outcome,
  seen: string,
): Result {
  const errors = safe.error === undefined ? '' : ` ${safe.error.join(' or ')}`;
  return { family, name, section, why, safe: `${safe.status.join(', ')}${errors}`, outcome, seen };
}
