/** Decodes base64 or base64url, with or without padding. @throws Error for any other text. */
export function bytesOfBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/').replace(/=+$/, ''));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

/** Parses JSON in base64url, such as a part of a JWT (RFC 7515) or a disclosure (RFC 9901). @throws Error for any other text. */
export function jsonOfBase64(text: string): unknown {
  return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytesOfBase64(text)));
}
