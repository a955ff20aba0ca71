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

/** @returns an http or https address without credentials; undefined for everything else. */
export function parseWebAddress(text: string): URL | undefined {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) return undefined;
  return url.username === '' && url.password === '' ? url : undefined;
}

export const isWebAddress = (text: string) => parseWebAddress(text) !== undefined;

const CHARACTERS = 'characters of a URI (RFC 3986); write others as %7C and the like';
const isWebUri = (text: string) => isUri(text) && isWebAddress(text);

/** Stored in the form in which it is sent: characters that a URI cannot contain are encoded. */
export const WebAddress = z
  .string()
  .overwrite(normalUri)
  .max(2048)
  .refine(isWebUri, 'an http or https address without credentials and control characters')
  .meta({ pattern: WEB_ADDRESS_PATTERN });

const CONTACTS = ['https:', 'http:', 'mailto:', 'tel:'];

/** Where somebody can be reached: a page, a mail address or a telephone. */
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
 * Of an authorization server: as tokens and metadata name it, character by character (RFC 8414 section 2). Only what is no URI
 * is encoded; compare with `isSameIssuer`.
 */
export const IssuerAddress = z
  .string()
  .overwrite(normalUri)
  .max(2048)
  .refine(isWebUri, 'an http or https address without credentials and control characters')
  .refine((text) => !/[?#]/.test(text), 'an issuer has neither query nor fragment')
  .meta({ pattern: ISSUER_PATTERN });

/** Whether a name that an authorization server gives itself is the configured one; both may be written in other scripts. */
export function isSameIssuer(one: string, other: string): boolean {
  return normalUri(one) === normalUri(other);
}

const MAX_IMAGE_LENGTH = 100_000;
/** RFC 2397, of images that every browser shows without running or loading anything. */
const IMAGE_DATA =
  /^data:image\/(?:png|jpeg|gif|webp|avif|svg\+xml)(?:;charset=utf-8)?(?:;base64,[A-Za-z0-9+/]+={0,2}|,(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/?]|%[0-9A-F]{2})+)$/i;

const isImageUri = (text: string) => IMAGE_DATA.test(text) || isWebUri(text);

/** Of a logo or a background that wallets and browsers show (OpenID4VCI 1.0 section 12.2.4: also a data URI). */
export const ImageUri = z
  .string()
  .overwrite((text) => (/^\s*https?:/i.test(text) ? normalUri(text) : text))
  .min(1)
  .max(MAX_IMAGE_LENGTH)
  .refine(isImageUri, 'an http or https address without credentials and control characters, or a data URL of an image')
  .meta({ pattern: IMAGE_PATTERN });

const HARMFUL = new RegExp(`^(?:${HARMFUL_SCHEMES.join('|')}):`, 'i');

/** Any absolute URI, such as the name of a type, that does nothing where a program makes a link of it. */
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
 * Name of a credential type, stored as it is written since names are compared letter by letter. With a colon it is a URI
 * (RFC 7519 section 2, StringOrURI), and none that runs or opens something.
 */
export const NameUri = z
  .string()
  .min(1)
  .max(2048)
  .refine(
    (text) => VISIBLE.test(text) && !HARMFUL.test(text) && (isUriReference(text) || !text.includes(':')),
    `a name without a colon, or a URI of ${CHARACTERS}; addresses that begin with javascript:, data:, file: and the like are none`,
  )
  .meta({ pattern: NAME_PATTERN });
