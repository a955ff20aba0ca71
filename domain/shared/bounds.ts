import { z } from 'zod';
import { isSafeId } from './json.ts';

/** A text that says something, in at most `max` characters. */
export const textUpTo = (max: number) => z.string().min(1).max(max);

/** A whole number from `min` to `max`. */
export const wholeNumber = (min: number, max: number) => z.number().int().min(min).max(max);

/** At least one entry, and at most `max`. */
export const listUpTo = <Entry extends z.ZodType>(entry: Entry, max: number) => z.array(entry).min(1).max(max);

/** One line of text for people. */
export const Line = z.string().trim().min(1).max(500).meta({ pattern: '^[^\\u0000]*[^\\s\\u0000][^\\u0000]*$' });

/** ISO 3166-1 alpha-2, and EU, EL and UK (TS 119 602 section 6.1.4). */
export const Country = z.string().regex(/^[A-Z]{2}$/, 'two capital letters (ISO 3166-1)');

/** The id of something of the tenant, as other things name it. */
export const Reference = textUpTo(128);

/** The name of a configuration; of a credential, also the `credential_configuration_id` of wallets and offers. */
export const ConfigurationId = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$/, 'letters, digits and . _ ~ -, at most 128')
  // Documents have members of this name, and a reader may mistake `constructor` for the function.
  .refine(isSafeId, 'this name is not allowed');
