import { Refusal } from '../../shared/refusal.ts';
import { decodeUtf8 } from '../../shared/utf8.ts';
import { type Cbor, type CborKey, EncodedCbor, SimpleValue, TAG, Tagged } from './values.ts';

const MAX_BYTES = 1536 * 1024;
const MAX_DEPTH = 32;
/** A byte can announce an empty map, which takes hundreds of bytes of memory. */
export const MAX_ITEMS = 10_000;
const INDEFINITE = 31;
const BREAK = 0xff;
const BYTES = 2;
const TEXT = 3;

/**
 * Reads the one item that `bytes` is (RFC 8949 section 3), definite or indefinite in length. Byte strings are
 * slices of the input, not copies.
 * @param limits `bytes`: largest input, 1.5 MiB by default.
 * @throws Refusal `malformed` for anything else: trailing bytes, reserved heads, text that is no UTF-8, a key
 *   twice in one map or of another type than integer and text, nesting deeper than 32, more than 10,000 items.
 */
export function decodeCbor(bytes: Uint8Array, limits: { readonly bytes?: number } = {}): Cbor {
  const maxBytes = limits.bytes ?? MAX_BYTES;
  if (bytes.length > maxBytes) throw malformed(`too long: at most ${maxBytes} bytes are accepted`);
  const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const cursor = { bytes: buffer, at: 0, items: 0 };
  const value = readItem(cursor, 0);
  if (cursor.at !== bytes.length) throw malformed('trailing bytes');
  return value;
}

function readItem(cursor: Cursor, depth: number): Cbor {
  const start = cursor.at;
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
  for (let at = start; at < end; at++) {
    if ((bytes[at] ?? 0) < 0x80) continue;
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
  let whole = '';
  for (const chunk of readChunks(cursor, TEXT)) {
    const text = decodeUtf8(chunk);
    // RFC 8949 section 3.2.3: no character is spread over chunks.
    if (text === undefined) throw malformed('text is not UTF-8');
    whole += text;
  }
  return whole;
}

function atBreak(cursor: Cursor): boolean {
  if (cursor.bytes[cursor.at] !== BREAK) return false;
  cursor.at++;
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
  const major = (cursor.bytes[cursor.at] ?? 0) >> 5;
  if (major > 1 && major !== TEXT) throw malformed('map key of another type');
  const key = readItem(cursor, depth) as CborKey;
  const before = map.size;
  map.set(key, readItem(cursor, depth));
  // RFC 8949 section 5.6: two readers could see two documents.
  if (map.size === before) throw malformed('duplicate map key');
}

function readTag(cursor: Cursor, info: number, start: number, depth: number): Tagged | EncodedCbor {
  const tag = readArgument(cursor, info);
  const value = readItem(cursor, depth);
  if (tag !== TAG.encoded) return new Tagged(tag, value);
  // RFC 8949 section 3.4.5.1
  if (!Buffer.isBuffer(value)) throw malformed('tag 24 without a byte string');
  return new EncodedCbor(value, cursor.bytes.subarray(start, cursor.at));
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
  // RFC 8949 section 3.3: smaller numbers have the short form; 28 to 30 are reserved, a lone break is nothing.
  if (number < 32) throw malformed('reserved head');
  return new SimpleValue(number);
}

/** A place in bytes that are read; `items` counts what has been read already. */
type Cursor = { readonly bytes: Buffer; at: number; items: number };

function readByte(cursor: Cursor): number {
  const byte = cursor.bytes[cursor.at];
  if (byte === undefined) throw malformed('truncated');
  cursor.at++;
  return byte;
}

/** Checks that `length` bytes follow, and moves behind them. @returns where they begin. */
function skip(cursor: Cursor, length: number): number {
  const start = cursor.at;
  if (length > cursor.bytes.length - start) throw malformed('truncated');
  cursor.at = start + length;
  return start;
}

/** RFC 8949 section 3: the argument of a head, whether or not it is the shortest form. */
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

/** Number of things that follow; each takes a byte or more, so no claim can exceed what is there. */
function readLength(cursor: Cursor, info: number, bytesEach: number): number {
  const length = readArgument(cursor, info);
  if (typeof length === 'bigint' || length * bytesEach > cursor.bytes.length - cursor.at) throw malformed('truncated');
  return length;
}

function malformed(detail: string): Refusal {
  return new Refusal('malformed', `CBOR: ${detail}`);
}
