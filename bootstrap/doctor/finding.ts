export type Outcome = 'ok' | 'warning' | 'fault';

/** What one check found. Messages are for the operator, and hold no secret. */
export type Finding = {
  /** What was looked at, such as `database`; several findings may be about one thing. */
  readonly check: string;
  readonly outcome: Outcome;
  readonly message: string;
  /** What to do about it; none where all is well. */
  readonly advice?: string;
};

/** Messages quote what others answered; none of it is to move the cursor of a terminal, or to look like a line of ours. */
const plain = (text: string) => text.replaceAll(/[\p{Cc}\p{Cf}]/gu, '?');

export const ok = (check: string, message: string): Finding => ({ check, outcome: 'ok', message: plain(message) });

export const warning = (check: string, message: string, advice: string): Finding => ({
  check,
  outcome: 'warning',
  message: plain(message),
  advice,
});

export const fault = (check: string, message: string, advice: string): Finding => ({
  check,
  outcome: 'fault',
  message: plain(message),
  advice,
});

const DAY_MS = 86_400_000;

/** Days from now, rounded towards now; negative when it is over. */
export function daysUntil(end: Date, now = new Date()): number {
  return Math.trunc((end.getTime() - now.getTime()) / DAY_MS);
}

/** A check that asks another process fails if it takes longer. */
const PATIENCE_MS = 20_000;

/**
 * A check that breaks is a fault of its own, and keeps no other from being made.
 * @param limitMs null for a check that only reads files of this machine: it ends by itself, however many files there are.
 */
export async function made(
  check: string,
  work: () => Promise<readonly Finding[]>,
  limitMs: number | null = PATIENCE_MS,
): Promise<readonly Finding[]> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    if (limitMs !== null) timer = setTimeout(() => reject(new Error('no answer in time')), limitMs);
  });
  try {
    return await Promise.race([work(), late]);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return [fault(check, `could not be looked at: ${reason}`, 'repair what the message names, then run the doctor again')];
  } finally {
    clearTimeout(timer);
  }
}
