export type Outcome = 'ok' | 'warning' | 'fault';

/** The result of one check. Messages are meant for the operator, and contain no secret. */
export type Finding = {
  /** The checked subject, such as `database`; several findings may have the same subject. */
  readonly check: string;
  readonly outcome: Outcome;
  readonly message: string;
  /** The remedy; undefined when there is no fault. */
  readonly advice?: string;
};

/** Messages quote other systems. Control characters are replaced, so that a quote cannot move the cursor or imitate a line of output. */
const withoutControls = (text: string) => text.replaceAll(/[\p{Cc}\p{Cf}]/gu, '?');

export const ok = (check: string, message: string): Finding => ({ check, outcome: 'ok', message: withoutControls(message) });

export const warning = (check: string, message: string, advice: string): Finding => ({
  check,
  outcome: 'warning',
  message: withoutControls(message),
  advice,
});

export const fault = (check: string, message: string, advice: string): Finding => ({
  check,
  outcome: 'fault',
  message: withoutControls(message),
  advice,
});

const DAY_MS = 86_400_000;

/** @returns full days from now until a date; negative for a date in the past. */
export function daysUntil(end: Date, now = new Date()): number {
  return Math.trunc((end.getTime() - now.getTime()) / DAY_MS);
}

/** A check that calls another process fails if it takes longer. */
const TIMEOUT_MS = 20_000;

/**
 * Runs a check. A check that throws is reported as a fault, and the other checks still run.
 * @param limitMs null for a check that only reads files of this machine: it ends by itself, however many files there are.
 */
export async function runCheck(
  check: string,
  work: () => Promise<readonly Finding[]>,
  limitMs: number | null = TIMEOUT_MS,
): Promise<readonly Finding[]> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    if (limitMs !== null) timer = setTimeout(() => reject(new Error('no answer in time')), limitMs);
  });
  try {
    return await Promise.race([work(), timeout]);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return [fault(check, `could not be checked: ${reason}`, 'fix the problem in the message, then run the doctor again')];
  } finally {
    clearTimeout(timer);
  }
}
