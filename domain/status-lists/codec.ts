import { inflateSync } from 'node:zlib';
import { decodeBase64url } from '../shared/base64url.ts';
import { Refusal } from '../shared/refusal.ts';
import { isEntryBits } from './bits.ts';

/** Sixteen million entries of eight bits; a longer list could exhaust the memory. */
const MAX_LIST_BYTES = 16 * 1024 * 1024;

/**
 * Decodes the properties `lst` and `bits` of an external list.
 * @throws Refusal `status_invalid`
 */
export function decompressList(lst: unknown, bits: unknown): Buffer {
  // Token Status List section 4.2: bits is the number 1, 2, 4 or 8.
  if (!isEntryBits(bits)) throw new Refusal('status_invalid', 'bits');
  // Token Status List section 4.2: base64url without padding.
  const compressed = typeof lst === 'string' ? decodeBase64url(lst) : undefined;
  if (compressed === undefined) throw new Refusal('status_invalid', 'lst is not base64url');
  const bytes = inflate(compressed);
  if (bytes.length === 0) throw new Refusal('status_invalid', 'lst is empty');
  return bytes;
}

/** zlib checks header, complete stream and Adler-32 (RFC 1950 section 2.3). */
function inflate(compressed: Buffer): Buffer {
  try {
    return inflateSync(compressed, { maxOutputLength: MAX_LIST_BYTES });
  } catch {
    throw new Refusal('status_invalid', 'lst does not inflate');
  }
}
