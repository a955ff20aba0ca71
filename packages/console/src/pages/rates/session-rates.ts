import type { components } from '../../../../client/src/api.d.ts';

export type SessionRates = components['schemas']['SessionRates'];
export type Sample = SessionRates['counted'];

const WORDS = { '24h': 'last 24 hours', '7d': 'last 7 days' } as const;
export type Period = keyof typeof WORDS;
export const PERIODS = Object.entries(WORDS) as readonly (readonly [Period, string])[];

export const periodOf = (text: string | null): Period => (text === '7d' ? '7d' : '24h');
export const pathOf = (period: Period) => `/session/rates?period=${period}`;

/** Which sessions a number is about. @param what they are, such as `sessions that failed`. */
export function aboutWhich({ sessions, isComplete }: Sample, what: string, period: Period): string {
  if (sessions === 0) return `There are no ${what} in the ${WORDS[period]}.`;
  if (sessions === 1 && isComplete) return `There is 1 ${what.replace('sessions', 'session')} of the ${WORDS[period]}.`;
  const number = sessions.toLocaleString('en');
  return `${isComplete ? 'All' : 'Of the'} ${isComplete ? number : `newest ${number}`} ${what} of the ${WORDS[period]}.`;
}

export type Row = {
  readonly kind: 'issuance' | 'verification';
  readonly total: number;
  readonly counts: readonly { readonly status: string; readonly count: number; readonly share: number }[];
};

const STATUSES = ['completed', 'failed', 'expired', 'active', 'fetched'] as const;

export function rowsOf(outcomes: SessionRates['outcomes']): readonly Row[] {
  const statuses = STATUSES.filter((status) => outcomes.some((outcome) => outcome.status === status));
  return (['issuance', 'verification'] as const).flatMap((kind) => {
    const own = outcomes.filter((outcome) => outcome.kind === kind);
    const total = own.reduce((sum, { count }) => sum + count, 0);
    if (total === 0) return [];
    const counts = statuses.map((status) => {
      const count = own.find((outcome) => outcome.status === status)?.count ?? 0;
      return { status, count, share: Math.round((count / total) * 100) };
    });
    return [{ kind, total, counts }];
  });
}
