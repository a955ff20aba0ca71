import { valueOrUndefined } from './value-or-undefined.ts';

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Text of UTF-8 bytes; `undefined` for bytes that are not UTF-8, instead of replacement characters. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  return valueOrUndefined(() => UTF8.decode(bytes));
}
