import { valueOrUndefined } from './value-or-undefined.ts';

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Decodes UTF-8; `undefined` for invalid bytes, instead of replacement characters. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  return valueOrUndefined(() => UTF8.decode(bytes));
}
