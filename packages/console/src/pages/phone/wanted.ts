import { signal } from '@preact/signals';
import { goTo } from '../../shell/place.ts';

/** What the phone is to open. Not in the address: whoever has the link of an offer can take what it offers. */
export const wanted = signal<string | undefined>(undefined);

export function openInPhone(link: string): void {
  wanted.value = link;
  goTo('phone');
}
