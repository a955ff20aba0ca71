import { z } from 'zod';

export const WebAddress = z
  .string()
  .max(2048)
  .refine((text) => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    return url !== undefined && ['https:', 'http:'].includes(url.protocol) && url.username === '';
  }, 'an http or https address without credentials');

/** Of an authorization server: as tokens and metadata name it, character by character (RFC 8414 section 2). */
export const IssuerAddress = WebAddress.refine(
  (text) => !/[?#\s\\]/.test(text),
  'an issuer has neither query nor fragment',
);
