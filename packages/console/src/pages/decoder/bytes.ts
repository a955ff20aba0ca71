import { bytesOfBase64 } from '../../../../wallet/src/core/formats/base64.ts';

/** Bytes of base64, base64url or hexadecimal text. @returns undefined for anything else. */
export function bytesOf(text: string): Uint8Array | undefined {
  const compact = text.replaceAll(/\s/g, '');
  if (/^(?:[0-9a-f]{2}){8,}$/i.test(compact)) return Uint8Array.from(compact.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
  if (compact.length < 8 || !/^[\w+/-]+={0,2}$/.test(compact)) return undefined;
  try {
    return bytesOfBase64(compact);
  } catch {
    return undefined;
  }
}

/** @throws TypeError where the bytes are no UTF-8. */
export function textOf(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
}

export function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
