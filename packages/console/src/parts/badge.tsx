type Tone = 'good' | 'bad' | 'open' | 'old';

const TONES: Readonly<Record<string, Tone>> = {
  active: 'open',
  fetched: 'open',
  completed: 'good',
  passed: 'good',
  delivered: 'good',
  ok: 'good',
  up: 'good',
  degraded: 'open',
  pending: 'open',
  error: 'bad',
  down: 'bad',
  failed: 'bad',
  suspended: 'bad',
  revoked: 'bad',
  expired: 'old',
};

/** A status in one word; the colour says nothing that the word does not. */
export function Badge({ status }: { readonly status: string }) {
  return <span class={`badge ${TONES[status] ?? 'old'}`}>{status}</span>;
}
