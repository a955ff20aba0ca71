import { z } from 'zod';
import { FOREIGN_SCHEMES, INVOCATION_PATTERN } from './address-patterns.ts';
import type { Finding } from './finding.ts';
import type { JsonObject } from './json.ts';
import { isSchemeOfApp } from './redirect-address.ts';
import { isUri, normalUri } from './uri.ts';
import { isWebAddress } from './web-address.ts';

/** Longer links need QR codes that cameras cannot read from a screen. */
export const MAX_QR_LENGTH = 1_200;

const FOREIGN_SCHEME = new RegExp(`^${FOREIGN_SCHEMES}:$`);

/** A wallet scheme or universal link; parameters are appended. */
export const InvocationUri = z
  .string()
  .overwrite((text) => (text.endsWith('://') ? text : normalUri(text)))
  .max(500)
  .regex(/^(?!https?:)[a-z][a-z0-9+.-]*:\/\/|^https:\/\/[^#\s]+$/, {
    message: 'a scheme of wallets such as openid4vp://, or an https address without a fragment',
  })
  .refine((text) => {
    const [, scheme = ''] = /^([a-z][a-z0-9+.-]*:)/.exec(text) ?? [];
    if (scheme !== 'https:') return !FOREIGN_SCHEME.test(scheme) && isUri(`${text.replace(/:\/\/$/, '://x')}`);
    return isUri(text) && isWebAddress(text);
  }, 'characters of a URI (RFC 3986), and no scheme of a browser, a program of the system or a protocol; schemes of wallets are openid4vp://, swiyu-verify:// or com.example.wallet://')
  .meta({ pattern: INVOCATION_PATTERN });

/**
 * The link that opens the wallet on the same device or as a QR code (OpenID4VP 1.0 sections 5 and 5.10.1, OpenID4VCI 1.0 section 4.1).
 * @param base scheme or universal link of a wallet.
 */
export function invocationUri(base: string, parameters: JsonObject): string {
  const query = Object.entries(parameters).map(
    ([name, value]) => `${name}=${encodeURIComponent(typeof value === 'string' ? value : JSON.stringify(value))}`,
  );
  return `${base}${base.includes('?') ? '&' : '?'}${query.join('&')}`;
}

/** Warns about a private scheme that is neither one of a known wallet nor a domain name in reverse (RFC 8252 section 7.1). */
export function findInvocationProblems(member: string, uri: string | null | undefined): Finding[] {
  const [, scheme = ''] = /^([a-z][a-z0-9+.-]*:)/.exec(uri ?? '') ?? [];
  if (scheme === '' || scheme === 'https:' || isSchemeOfApp(scheme)) return [];
  return [
    {
      rule: 'RFC 8252 section 7.1',
      member,
      concerns: 'users whose device has no app for the scheme, or an app that is not the wallet',
      message: `"${scheme}//" is not the scheme of a known wallet`,
      change: 'compare it with the documentation of the wallet; a domain name in reverse such as com.example.wallet:// is unambiguous',
    },
  ];
}
