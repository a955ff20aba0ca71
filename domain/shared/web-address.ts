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
