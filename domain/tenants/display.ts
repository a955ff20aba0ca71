import { z } from 'zod';
import { strictInput } from '../shared/input-object.ts';
import { ImageUri } from '../shared/web-address.ts';

export const DisplayText = z.string().max(500);

export const Locale = z
  .string()
  .regex(/^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$/, 'a BCP 47 language tag such as en or de-AT')
  .describe('BCP 47, such as en or de-AT; each language at most once');

export const Color = z.string().regex(/^#(?:[0-9A-Fa-f]{3,4}|[0-9A-Fa-f]{6}|[0-9A-Fa-f]{8})$/, 'a CSS hex colour');

export const Logo = strictInput({
  uri: ImageUri.describe('https or data URL of an image'),
  alt_text: DisplayText.optional().describe('Text alternative for screen readers'),
});

/** Display data of the issuer (OpenID4VCI 1.0 section 12.2.4). */
export const DisplayInfo = strictInput({
  name: DisplayText.min(1).describe('Name of the issuer as wallets show it'),
  locale: Locale.optional(),
  logo: Logo.optional().describe('Logo of the issuer'),
}).meta({ id: 'DisplayInfo' });

type Images = { logo?: unknown; background_image?: unknown };

/**
 * Display data for wallets. An image with an invalid address, stored by an earlier release, is omitted: libraries would reject the whole
 * metadata for it.
 */
export function withReadableImages<T extends Images>(display: T): T {
  const images: Images = { ...display };
  for (const name of ['logo', 'background_image'] as const) {
    const image = images[name];
    if (image === undefined || image === null) continue;
    const uri = ImageUri.safeParse((image as { readonly uri?: unknown }).uri);
    if (uri.success) images[name] = { ...image, uri: uri.data };
    else delete images[name];
  }
  return images as T;
}
