import { signal } from '@preact/signals';

/** The last thing that was done, for everybody: it is also read out. */
const said = signal('');
let ends: ReturnType<typeof setTimeout> | undefined;

export function say(text: string): void {
  said.value = text;
  clearTimeout(ends);
  ends = setTimeout(() => {
    said.value = '';
  }, 6_000);
}

export function Said() {
  return (
    // It is there before it says something, or it would not be read out.
    <div role="status">{said.value !== '' && <p class="said">{said.value}</p>}</div>
  );
}
