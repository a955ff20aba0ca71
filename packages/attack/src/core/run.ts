import { type Case, evaluate, type Family, type Outcome, printable } from './case.ts';
import { Skip } from './skip.ts';

/** Timeout of one case with all of its calls, in milliseconds. */
const CASE_MS = 120_000;

export type Result = {
  readonly family: string;
  readonly name: string;
  readonly section: string;
  readonly why: string;
  /** The expected safe response. */
  readonly safe: string;
  readonly outcome: Outcome;
  readonly seen: string;
};

export type FamilyResult = {
  readonly family: string;
  readonly title: string;
  /** `skipped`: the target lacks the feature. `not run`: the correct flow did not succeed. */
  readonly state: 'run' | 'skipped' | 'not run';
  readonly reason: string;
  readonly results: readonly Result[];
};

/** Runs one family: the correct flow, then each attack, then the correct flow again. */
export async function runFamily<World>(family: Family<World>, world: World): Promise<FamilyResult> {
  const { id, title, control, cases } = family;
  try {
    await inTime(control(world));
  } catch (error) {
    const reason = reasonOf(error);
    const state = error instanceof Skip ? 'skipped' : 'not run';
    const results = state === 'skipped' ? cases.map((testCase) => resultOf(id, testCase, 'skipped', reason)) : [];
    return { family: id, title, state, reason, results };
  }
  const results: Result[] = [];
  for (const testCase of cases) results.push(await runCase(id, testCase, world));
  results.push(await verifyCorrectFlow(id, control, world));
  return { family: id, title, state: 'run', reason: '', results };
}

async function runCase<World>(family: string, testCase: Case<World>, world: World): Promise<Result> {
  try {
    const answerOrResult = await inTime(testCase.run(world));
    const { outcome, seen: observation } = 'outcome' in answerOrResult ? answerOrResult : evaluate(answerOrResult, testCase.safe);
    return resultOf(family, testCase, outcome, observation);
  } catch (error) {
    return resultOf(family, testCase, error instanceof Skip ? 'skipped' : 'unclear', reasonOf(error));
  }
}

/** An attack after which the correct flow fails has worked, independent of its response. */
async function verifyCorrectFlow<World>(family: string, control: Family<World>['control'], world: World): Promise<Result> {
  const controlCase = {
    name: 'the right flow, after all of these',
    section: 'availability',
    why: 'attacks of strangers must not shut out others',
    safe: { status: [200] },
  };
  try {
    await control(world);
    return resultOf(family, controlCase, 'held', 'succeeds');
  } catch (error) {
    return resultOf(family, controlCase, error instanceof Skip ? 'skipped' : 'open', reasonOf(error));
  }
}

async function inTime<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('took too long')), CASE_MS);
  });
  try {
    return await Promise.race([work, timeout]);
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
