/** Unpadded base64url (RFC 4648 section 5) of bytes, or of the UTF-8 form of a string. */
export function encodeBase64url(data: Uint8Array | string): string {
  return typeof data === 'string'
    ? Buffer.from(data, 'utf8').toString('base64url')
    : Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64url');
}

/**
 * Decodes strictly unpadded base64url. `undefined` for padding, invalid characters, an impossible length or non-zero trailing bits, so that
 * each value has one spelling.
 */
export function decodeBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : undefined;
}
