import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { place } from '../shell/place.ts';

/** The last thing that was done, for everybody: it is also read out. */
const said = signal('');
let ends: ReturnType<typeof setTimeout> | undefined;
let saidAt = 0;
const JUST_NOW_MS = 1_000;

export function say(text: string): void {
  said.value = text;
  saidAt = performance.now();
  clearTimeout(ends);
  ends = setTimeout(() => {
    said.value = '';
  }, 6_000);
}

export function Said() {
  const { page, id } = place.value;
  useEffect(() => {
    if (performance.now() - saidAt > JUST_NOW_MS) said.value = '';
  }, [page, id]);
  return (
    // It is there before it says something, or it would not be read out.
    <div role="status">{said.value !== '' && <p class="said">{said.value}</p>}</div>
  );
}
