import { z } from 'zod';
import {
  CONTACT_PATTERN,
  HARMFUL_SCHEMES,
  IMAGE_PATTERN,
  ISSUER_PATTERN,
  URI_PATTERN,
  WEB_ADDRESS_PATTERN,
} from './address-patterns.ts';

/** @returns an http or https address without credentials; undefined for everything else. */
export function readWebAddress(text: string): URL | undefined {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) return undefined;
  return url.username === '' && url.password === '' ? url : undefined;
}

export const isWebAddress = (text: string) => readWebAddress(text) !== undefined;

export const WebAddress = z
  .string()
  .max(2048)
  .refine(isWebAddress, 'an http or https address without credentials')
  .meta({ pattern: WEB_ADDRESS_PATTERN });

const CONTACTS = ['https:', 'http:', 'mailto:', 'tel:'];

/** Where somebody can be reached: a page, a mail address or a telephone. */
export const ContactUri = z
  .string()
  .max(2048)
  .refine(
    (text) => CONTACTS.includes(URL.parse(text)?.protocol ?? ''),
    'an address that begins with https:, http:, mailto: or tel:',
  )
  .meta({ pattern: CONTACT_PATTERN });

/** Of an authorization server: as tokens and metadata name it, character by character (RFC 8414 section 2). */
export const IssuerAddress = WebAddress.refine(
  (text) => !/[?#\s\\]/.test(text),
  'an issuer has neither query nor fragment',
).meta({ pattern: ISSUER_PATTERN });

const MAX_IMAGE_LENGTH = 100_000;
/** RFC 2397, of images that every browser shows without running or loading anything. */
const IMAGE_DATA =
  /^data:image\/(?:png|jpeg|gif|webp|avif|svg\+xml)(?:;charset=utf-8)?(?:;base64,[A-Za-z0-9+/]+={0,2}|,[A-Za-z0-9\-._~!$&'()*+,;=:@/?%]+)$/i;

/** Of a logo or a background that wallets and browsers show (OpenID4VCI 1.0 section 12.2.4: also a data URI). */
export const ImageUri = z
  .string()
  .min(1)
  .max(MAX_IMAGE_LENGTH)
  .refine(
    (text) => IMAGE_DATA.test(text) || (text.length <= 2048 && isWebAddress(text)),
    'an http or https address without credentials, or a data URL of an image',
  )
  .meta({ pattern: IMAGE_PATTERN });

const HARMFUL = new RegExp(`^(?:${HARMFUL_SCHEMES.join('|')}):`, 'i');

/** Any absolute URI, such as the name of a type, that does nothing where a program makes a link of it. */
export const HarmlessUri = z
  .string()
  .max(2048)
  .refine(
    (text) => URL.canParse(text) && !HARMFUL.test(text.trim()),
    'an absolute URI, not one of a script, a file or data',
  )
  .meta({ pattern: URI_PATTERN });

/** A name that may be a URI; one that would run or open something is none. */
export const NameUri = z
  .string()
  .min(1)
  .max(2048)
  .refine(
    (text) => !HARMFUL.test(text.trim()),
    'a name; addresses that begin with javascript:, data:, file: and the like are none',
  );
