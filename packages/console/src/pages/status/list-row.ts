import type { components } from '../../../../client/src/api.d.ts';

export type ListRow = Required<components['schemas']['StatusList']>;

export function filled({ usedEntries, capacity }: Pick<ListRow, 'usedEntries' | 'capacity'>): string {
  const share = Math.round((usedEntries / capacity) * 100);
  return `${usedEntries.toLocaleString('en')} of ${capacity.toLocaleString('en')} (${share} %)`;
}
