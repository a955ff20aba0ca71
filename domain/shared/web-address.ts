import { z } from 'zod';
import {
  CONTACT_PATTERN,
  HARMFUL_SCHEMES,
  IMAGE_PATTERN,
  ISSUER_PATTERN,
  NAME_PATTERN,
  URI_PATTERN,
  WEB_ADDRESS_PATTERN,
} from './address-patterns.ts';
import { isUri, isUriReference, normalUri } from './uri.ts';

/** @returns an http or https address without credentials; otherwise undefined. */
export function parseWebAddress(text: string): URL | undefined {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) return undefined;
  return url.username === '' && url.password === '' ? url : undefined;
}

export const isWebAddress = (text: string) => parseWebAddress(text) !== undefined;

const CHARACTERS = 'characters of a URI (RFC 3986); write others as %7C and the like';
const isWebUri = (text: string) => isUri(text) && isWebAddress(text);

/** Stored as sent: characters that are invalid in a URI are encoded. */
export const WebAddress = z
  .string()
  .overwrite(normalUri)
  .max(2048)
  .refine(isWebUri, 'an http or https address without credentials and control characters')
  .meta({ pattern: WEB_ADDRESS_PATTERN });

const CONTACTS = ['https:', 'http:', 'mailto:', 'tel:'];

/** A contact address: a page, an email address or a telephone number. */
export const ContactUri = z
  .string()
  .overwrite(normalUri)
  .max(2048)
  .refine(
    (text) => isUri(text) && CONTACTS.includes(URL.parse(text)?.protocol ?? ''),
    `an address that begins with https:, http:, mailto: or tel:, of ${CHARACTERS}`,
  )
  .meta({ pattern: CONTACT_PATTERN });

/**
 * Issuer of an authorization server, exactly as in tokens and metadata (RFC 8414 section 2). Only invalid characters are encoded; compare
 * with `isSameIssuer`.
 */
export const IssuerAddress = z
  .string()
  .overwrite(normalUri)
  .max(2048)
  .refine(isWebUri, 'an http or https address without credentials and control characters')
  .refine((text) => !/[?#]/.test(text), 'an issuer has neither query nor fragment')
  .meta({ pattern: ISSUER_PATTERN });

/** Compares an issuer in a token or metadata with the configured one; both may be written in other scripts. */
export function isSameIssuer(issuer: string, otherIssuer: string): boolean {
  return normalUri(issuer) === normalUri(otherIssuer);
}

const MAX_IMAGE_LENGTH = 100_000;
/** RFC 2397, for image types that browsers display without executing or loading anything. */
const IMAGE_DATA =
  /^data:image\/(?:png|jpeg|gif|webp|avif|svg\+xml)(?:;charset=utf-8)?(?:;base64,[A-Za-z0-9+/]+={0,2}|,(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/?]|%[0-9A-F]{2})+)$/i;

const isImageUri = (text: string) => IMAGE_DATA.test(text) || isWebUri(text);

/** A logo or background for wallets and browsers (OpenID4VCI 1.0 section 12.2.4 permits data URIs). */
export const ImageUri = z
  .string()
  .overwrite((text) => (/^\s*https?:/i.test(text) ? normalUri(text) : text))
  .min(1)
  .max(MAX_IMAGE_LENGTH)
  .refine(isImageUri, 'an http or https address without credentials and control characters, or a data URL of an image')
  .meta({ pattern: IMAGE_PATTERN });

const HARMFUL = new RegExp(`^(?:${HARMFUL_SCHEMES.join('|')}):`, 'i');

/** Any absolute URI, such as the name of a type, that is harmless as a link. */
export const HarmlessUri = z
  .string()
  .overwrite(normalUri)
  .max(2048)
  .refine(
    (text) => isUri(text) && URL.canParse(text) && !HARMFUL.test(text),
    `an absolute URI, not one of a script, a file or data, of ${CHARACTERS}`,
  )
  .meta({ pattern: URI_PATTERN });

// biome-ignore lint/suspicious/noControlCharactersInRegex: names that contain them are rejected
const VISIBLE = /^[^\u0000-\u001f\u007f]*\S[^\u0000-\u001f\u007f]*$/;

/**
 * Name of a credential type, stored unchanged because names are compared exactly. With a colon it must be a URI (RFC 7519 section 2,
 * StringOrURI) with a harmless scheme.
 */
export const NameUri = z
  .string()
  .min(1)
  .max(2048)
  .refine(
    (text) => VISIBLE.test(text) && !HARMFUL.test(text) && (isUriReference(text) || !text.includes(':')),
    `a name without a colon, or a URI of ${CHARACTERS}; addresses that begin with javascript:, data:, file: and similar schemes are not allowed`,
  )
  .meta({ pattern: NAME_PATTERN });
