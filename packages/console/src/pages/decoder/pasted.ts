import { signal } from '@preact/signals';

/** What was handed to the decoder; in the memory of this page, and forgotten when somebody else becomes the one who looks. */
export const pasted = signal('');
