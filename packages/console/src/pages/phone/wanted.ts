import { signal } from '@preact/signals';
import { goTo } from '../../shell/place.ts';

export const wanted = signal<string | undefined>(undefined);

export function openInPhone(link: string): void {
  wanted.value = link;
  goTo('phone');
}
