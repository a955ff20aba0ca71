import { z } from 'zod';
import { INVOCATION_PATTERN } from './address-patterns.ts';
import type { JsonObject } from './json.ts';
import { isSchemeOfApp } from './redirect-address.ts';
import { isUri } from './uri.ts';
import { isWebAddress } from './web-address.ts';

/** A scheme of wallets or the universal link of one; parameters are appended. */
export const InvocationUri = z
  .string()
  .max(500)
  .regex(/^(?!https?:)[a-z][a-z0-9+.-]*:\/\/|^https:\/\/[^#\s]+$/, {
    message: 'a scheme of wallets such as openid4vp://, or an https address without a fragment',
  })
  .refine((text) => {
    const [, scheme = ''] = /^([a-z][a-z0-9+.-]*:)/.exec(text) ?? [];
    if (scheme !== 'https:') return isSchemeOfApp(scheme) && isUri(`${text.replace(/:\/\/$/, '://x')}`);
    return isUri(text) && isWebAddress(text);
  }, 'characters of a URI (RFC 3986); a private scheme has a dot, such as com.example.wallet://, or is a known one of wallets')
  .meta({ pattern: INVOCATION_PATTERN });

/**
 * What starts the wallet, as a link on the same device or as a QR code (OpenID4VP 1.0 sections 5 and 5.10.1,
 * OpenID4VCI 1.0 section 4.1).
 * @param base scheme of wallets, or the universal link of one.
 */
export function invocationUri(base: string, parameters: JsonObject): string {
  const query = Object.entries(parameters).map(
    ([name, value]) =>
      `${name}=${encodeURIComponent(typeof value === 'string' ? value : JSON.stringify(value))}`,
  );
  return `${base}${base.includes('?') ? '&' : '?'}${query.join('&')}`;
}
