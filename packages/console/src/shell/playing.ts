import { signal } from '@preact/signals';

/** Whether a game of the playground goes on: its page is there for whoever one is meanwhile. */
export const isPlaying = signal(false);
