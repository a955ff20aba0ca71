import { Refusal } from '../../shared/refusal.ts';
import { decodeUtf8 } from '../../shared/utf8.ts';
import { type Cbor, type CborKey, EncodedCbor, SimpleValue, TAG, Tagged } from './values.ts';

const MAX_BYTES = 1536 * 1024;
const MAX_DEPTH = 32;
/** Limits memory: one byte of input can be an empty map, which takes hundreds of bytes. */
export const MAX_ITEMS = 10_000;
const INDEFINITE = 31;
const BREAK = 0xff;
const BYTES = 2;
const TEXT = 3;

/**
 * Decodes the single item in `bytes` (RFC 8949 section 3), of definite or indefinite length. Byte strings are slices of the input, not
 * copies.
 * @param limits `bytes`: largest input, 1.5 MiB by default.
 * @throws Refusal `malformed` for trailing bytes, reserved heads, text that is no UTF-8, duplicate keys, keys other than integers and
 * texts, nesting deeper than 32, and more than 10,000 items.
 */
export function decodeCbor(bytes: Uint8Array, limits: { readonly bytes?: number } = {}): Cbor {
  const maxBytes = limits.bytes ?? MAX_BYTES;
  if (bytes.length > maxBytes) throw malformed(`too long: at most ${maxBytes} bytes are accepted`);
  const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const cursor = { bytes: buffer, offset: 0, items: 0 };
  const value = readItem(cursor, 0);
  if (cursor.offset !== bytes.length) throw malformed('trailing bytes');
  return value;
}

function readItem(cursor: Cursor, depth: number): Cbor {
  const start = cursor.offset;
  const head = readByte(cursor);
  if (++cursor.items > MAX_ITEMS) throw malformed(`too many items: at most ${MAX_ITEMS} are accepted`);
  const info = head & 0x1f;
  switch (head >> 5) {
    case 0:
      return readArgument(cursor, info);
    case 1:
      return negative(readArgument(cursor, info));
    case BYTES:
      return info === INDEFINITE ? Buffer.concat(readChunks(cursor, BYTES)) : readBytes(cursor, info);
    case TEXT:
      return info === INDEFINITE ? readTextChunks(cursor) : readText(cursor, info);
    case 4:
      return readArray(cursor, info, deeper(depth));
    case 5:
      return readMap(cursor, info, deeper(depth));
    case 6:
      return readTag(cursor, info, start, deeper(depth));
    default:
      return readSimple(cursor, info);
  }
}

function deeper(depth: number): number {
  if (depth >= MAX_DEPTH) throw malformed(`too deep: at most ${MAX_DEPTH} levels are accepted`);
  return depth + 1;
}

function negative(argument: number | bigint): number | bigint {
  if (typeof argument === 'bigint') return -1n - argument;
  const value = -1 - argument;
  return Number.isSafeInteger(value) ? value : -1n - BigInt(argument);
}

function readBytes(cursor: Cursor, info: number): Buffer {
  const length = readLength(cursor, info, 1);
  const start = skip(cursor, length);
  return cursor.bytes.subarray(start, start + length);
}

function readText(cursor: Cursor, info: number): string {
  const length = readLength(cursor, info, 1);
  const start = skip(cursor, length);
  const { bytes } = cursor;
  const end = start + length;
  for (let index = start; index < end; index++) {
    if ((bytes[index] ?? 0) < 0x80) continue;
    const text = decodeUtf8(bytes.subarray(start, end));
    // RFC 8949 section 5.3.1: a text string that is no UTF-8 is not valid.
    if (text === undefined) throw malformed('text is not UTF-8');
    return text;
  }
  return bytes.toString('latin1', start, end);
}

/** RFC 8949 section 3.2.3: the chunks are definite and of the same type. */
function readChunks(cursor: Cursor, major: typeof BYTES | typeof TEXT): Buffer[] {
  const chunks: Buffer[] = [];
  for (;;) {
    const head = readByte(cursor);
    if (head === BREAK) return chunks;
    if (++cursor.items > MAX_ITEMS) throw malformed(`too many items: at most ${MAX_ITEMS} are accepted`);
    if (head >> 5 !== major) throw malformed('chunk of another type');
    chunks.push(readBytes(cursor, head & 0x1f));
  }
}

function readTextChunks(cursor: Cursor): string {
  let joinedText = '';
  for (const chunk of readChunks(cursor, TEXT)) {
    const text = decodeUtf8(chunk);
    // RFC 8949 section 3.2.3: a character must not span chunks.
    if (text === undefined) throw malformed('text is not UTF-8');
    joinedText += text;
  }
  return joinedText;
}

function atBreak(cursor: Cursor): boolean {
  if (cursor.bytes[cursor.offset] !== BREAK) return false;
  cursor.offset++;
  return true;
}

function readArray(cursor: Cursor, info: number, depth: number): Cbor[] {
  const items: Cbor[] = [];
  if (info === INDEFINITE) {
    while (!atBreak(cursor)) items.push(readItem(cursor, depth));
    return items;
  }
  const length = readLength(cursor, info, 1);
  for (let index = 0; index < length; index++) items.push(readItem(cursor, depth));
  return items;
}

function readMap(cursor: Cursor, info: number, depth: number): Map<CborKey, Cbor> {
  const map = new Map<CborKey, Cbor>();
  if (info === INDEFINITE) {
    while (!atBreak(cursor)) readEntry(cursor, map, depth);
    return map;
  }
  const length = readLength(cursor, info, 2);
  for (let index = 0; index < length; index++) readEntry(cursor, map, depth);
  return map;
}

function readEntry(cursor: Cursor, map: Map<CborKey, Cbor>, depth: number): void {
  const major = (cursor.bytes[cursor.offset] ?? 0) >> 5;
  if (major > 1 && major !== TEXT) throw malformed('map key of another type');
  const key = readItem(cursor, depth) as CborKey;
  const previousSize = map.size;
  map.set(key, readItem(cursor, depth));
  // RFC 8949 section 5.6: two decoders could read different documents.
  if (map.size === previousSize) throw malformed('duplicate map key');
}

function readTag(cursor: Cursor, info: number, start: number, depth: number): Tagged | EncodedCbor {
  const tag = readArgument(cursor, info);
  const value = readItem(cursor, depth);
  if (tag !== TAG.encoded) return new Tagged(tag, value);
  // RFC 8949 section 3.4.5.1
  if (!Buffer.isBuffer(value)) throw malformed('tag 24 without a byte string');
  return new EncodedCbor(value, cursor.bytes.subarray(start, cursor.offset));
}

function readSimple(cursor: Cursor, info: number): Cbor {
  const { bytes } = cursor;
  if (info === 20 || info === 21) return info === 21;
  if (info === 22) return null;
  if (info === 23) return undefined;
  if (info < 20) return new SimpleValue(info);
  if (info === 25) return new DataView(bytes.buffer, bytes.byteOffset).getFloat16(skip(cursor, 2));
  if (info === 26) return bytes.readFloatBE(skip(cursor, 4));
  if (info === 27) return bytes.readDoubleBE(skip(cursor, 8));
  const number = info === 24 ? readByte(cursor) : 0;
  // RFC 8949 section 3.3: smaller numbers have the short form; 28 to 30 are reserved, and a break is invalid here.
  if (number < 32) throw malformed('reserved head');
  return new SimpleValue(number);
}

/** Read position in the input; `items` counts the decoded items. */
type Cursor = { readonly bytes: Buffer; offset: number; items: number };

function readByte(cursor: Cursor): number {
  const byte = cursor.bytes[cursor.offset];
  if (byte === undefined) throw malformed('truncated');
  cursor.offset++;
  return byte;
}

/** Advances by `length` bytes. @returns the offset of the first of them. */
function skip(cursor: Cursor, length: number): number {
  const start = cursor.offset;
  if (length > cursor.bytes.length - start) throw malformed('truncated');
  cursor.offset = start + length;
  return start;
}

/** RFC 8949 section 3: the argument of a head, in the shortest or a longer form. */
function readArgument(cursor: Cursor, info: number): number | bigint {
  if (info < 24) return info;
  if (info === 24) return readByte(cursor);
  if (info === 25) return cursor.bytes.readUInt16BE(skip(cursor, 2));
  if (info === 26) return cursor.bytes.readUInt32BE(skip(cursor, 4));
  if (info === 27) {
    const value = cursor.bytes.readBigUInt64BE(skip(cursor, 8));
    return value <= Number.MAX_SAFE_INTEGER ? Number(value) : value;
  }
  throw malformed('reserved head');
}

/** Number of elements that follow; each takes at least `bytesEach` bytes, so a larger number is invalid. */
function readLength(cursor: Cursor, info: number, bytesEach: number): number {
  const length = readArgument(cursor, info);
  if (typeof length === 'bigint' || length * bytesEach > cursor.bytes.length - cursor.offset) throw malformed('truncated');
  return length;
}

function malformed(detail: string): Refusal {
  return new Refusal('malformed', `CBOR: ${detail}`);
}
