import { deflateSync } from 'node:zlib';

/**
 * The `lst` property: DEFLATE in a ZLIB container (Token Status List section 4.1), base64url. The text depends on the zlib
 * build; only the inflated bytes are canonical.
 */
export function compressList(bytes: Uint8Array): string {
  return deflateSync(bytes, { level: 9 }).toString('base64url');
}
