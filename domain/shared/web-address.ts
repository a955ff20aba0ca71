import { z } from 'zod';

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
  .refine(isWebAddress, 'an http or https address without credentials');

const CONTACTS = ['https:', 'http:', 'mailto:', 'tel:'];

/** Where somebody can be reached: a page, a mail address or a telephone. */
export const ContactUri = z
  .string()
  .max(2048)
  .refine(
    (text) => CONTACTS.includes(URL.parse(text)?.protocol ?? ''),
    'an address that begins with https:, http:, mailto: or tel:',
  );

/** Of an authorization server: as tokens and metadata name it, character by character (RFC 8414 section 2). */
export const IssuerAddress = WebAddress.refine(
  (text) => !/[?#\s\\]/.test(text),
  'an issuer has neither query nor fragment',
);

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
  );

/** Schemes whose addresses run, open or read something where they are shown as links. */
const HARMFUL = /^(?:javascript|vbscript|data|blob|file|filesystem|about|view-source|intent|jar):/i;

/** Any absolute URI, such as the name of a type, that does nothing where a program makes a link of it. */
export const isHarmlessUri = (text: string) => URL.canParse(text) && !HARMFUL.test(text.trim());

/** A name that may be a URI; one that would run or open something is none. */
export const NameUri = z
  .string()
  .min(1)
  .max(2048)
  .refine(
    (text) => !HARMFUL.test(text.trim()),
    'a name; addresses that begin with javascript:, data:, file: and the like are none',
  );
