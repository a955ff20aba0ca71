import { z } from 'zod';
import { isSafeId } from './json.ts';

/** A non-empty text of at most `max` characters. */
export const textUpTo = (max: number) => z.string().min(1).max(max);

export const wholeNumber = (min: number, max: number) => z.number().int().min(min).max(max);

export const listUpTo = <Entry extends z.ZodType>(entry: Entry, max: number) => z.array(entry).min(1).max(max);

/** One line of display text. */
export const Line = z.string().trim().min(1).max(500).meta({ pattern: '^[^\\u0000]*[^\\s\\u0000][^\\u0000]*$' });

/** ISO 3166-1 alpha-2, and EU, EL and UK (TS 119 602 section 6.1.4). */
export const Country = z.string().regex(/^[A-Z]{2}$/, 'two capital letters (ISO 3166-1)');

/** The id of another object of the tenant. */
export const Reference = textUpTo(128);

/** Id of a configuration; for a credential configuration also its `credential_configuration_id`. */
export const ConfigurationId = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$/, 'letters, digits and . _ ~ -, at most 128')
  // Documents use the id as a property name, and `constructor` could be mistaken for the function.
  .refine(isSafeId, 'this name is not allowed');
