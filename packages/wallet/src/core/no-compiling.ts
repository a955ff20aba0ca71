import { config } from 'zod';

/**
 * Imported before everything that makes schemas: pages with a strict content security policy report every try to compile code, also one that
 * is given up.
 */
config({ jitless: true });
