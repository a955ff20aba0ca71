import { config } from 'zod';

/**
 * Imported before all modules with schemas: pages with a strict content security policy report every attempt to compile code, even one that
 * fails gracefully.
 */
config({ jitless: true });
