import { signal } from '@preact/signals';

export const pasted = signal('');
