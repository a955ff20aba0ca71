import { z } from 'zod';
import { ORIGIN_PATTERN } from '../shared/address-patterns.ts';

/**
 * OpenID4VP 1.0 appendix A.2: compared letter by letter. `http` is for development on one machine; what is no address
 * of the web names an app and is opaque.
 */
export const Origin = z
  .string()
  .max(500)
  .refine(isOrigin, 'an origin without a path or a wildcard, for example https://shop.example')
  .meta({ pattern: ORIGIN_PATTERN });

function isOrigin(text: string): boolean {
  if (/^(android|platform|ios):[\x21-\x7e]+$/.test(text)) return true;
  const url = URL.parse(text);
  if (url?.origin !== text) return false;
  // Letter by letter: a wildcard stands for nothing.
  if (url.hostname.includes('*')) return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && isThisMachine(url.hostname));
}

function isThisMachine(host: string): boolean {
  return ['localhost', '127.0.0.1', '[::1]'].includes(host) || host.endsWith('.localhost');
}
