import { z } from 'zod';
import { ImageUri } from '../shared/web-address.ts';
import { written } from '../shared/written.ts';

export const DisplayText = z.string().max(500);

export const Locale = z
  .string()
  .regex(/^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$/, 'a BCP 47 language tag such as en or de-AT')
  .describe('BCP 47, such as en or de-AT; each language at most once');

export const Color = z.string().regex(/^#(?:[0-9A-Fa-f]{3,4}|[0-9A-Fa-f]{6}|[0-9A-Fa-f]{8})$/, 'a CSS hex colour');

export const Logo = written({
  uri: ImageUri.describe('https or data URL of an image'),
  alt_text: DisplayText.optional().describe('For those who do not see it'),
});

/** How the issuer itself is shown (OpenID4VCI 1.0 section 12.2.4). */
export const DisplayInfo = written({
  name: DisplayText.min(1).describe('Name of the issuer as wallets show it'),
  locale: Locale.optional(),
  logo: Logo.optional().describe('Of the issuer'),
}).meta({ id: 'DisplayInfo' });

type Images = { logo?: unknown; background_image?: unknown };

/**
 * What wallets are shown. An image of an earlier release whose address is none is left out: one such address makes libraries
 * refuse the metadata with all that the tenant issues.
 */
export function withReadableImages<T extends Images>(display: T): T {
  const read: Images = { ...display };
  for (const name of ['logo', 'background_image'] as const) {
    const image = read[name];
    if (image === undefined || image === null) continue;
    const uri = ImageUri.safeParse((image as { readonly uri?: unknown }).uri);
    if (uri.success) read[name] = { ...image, uri: uri.data };
    else delete read[name];
  }
  return read as T;
}
