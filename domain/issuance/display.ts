import { z } from 'zod';

export const DisplayText = z.string().max(500);

export const Locale = z
  .string()
  .regex(/^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$/, 'a BCP 47 language tag such as en or de-AT');

export const Logo = z.object({ uri: z.string().min(1).max(100_000), alt_text: DisplayText.optional() });

/** How the issuer itself is shown (OpenID4VCI 1.0 section 12.2.4). */
export const DisplayInfo = z
  .object({ name: DisplayText.min(1), locale: Locale.optional(), logo: Logo.optional() })
  .meta({ id: 'DisplayInfo' });
