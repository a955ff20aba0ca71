import { signal } from '@preact/signals';

export const isPlaying = signal(false);
