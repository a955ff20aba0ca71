import { type Cbor, type CborKey, type CborMap, type CborObject, EncodedCbor, isArray, isMap, SimpleValue, TAG, Tagged } from './values.ts';

/** Valid values nest less deeply; a cycle exceeds the limit. */
const MAX_DEPTH = 64;
const MAX_UINT64 = 0xffff_ffff_ffff_ffffn;
const ASCII_LOOP = 48;

/**
 * Encodes an item deterministically (RFC 8949 section 4.2): definite lengths, shortest heads and floats, sorted map keys, integers never as
 * floats. `EncodedCbor` is copied unchanged.
 * @throws RangeError for nesting deeper than 64.
 */
export function encodeCbor(value: Cbor): Buffer {
  const writer = newWriter();
  write(writer, value, 0);
  return writtenBytes(writer);
}

/** Wraps an encoded item in a byte string with tag 24 (RFC 8949 section 3.4.5.1). */
export function embed(content: Buffer): EncodedCbor {
  const writer = newWriter(content.length + 11);
  writeHead(writer, 6, TAG.encoded);
  writeHead(writer, 2, content.length);
  const start = writer.offset;
  append(writer, content);
  const encoded = writtenBytes(writer);
  return new EncodedCbor(encoded.subarray(start), encoded);
}

function write(writer: Writer, value: Cbor, depth: number): void {
  if (typeof value === 'string') writeText(writer, value);
  else if (typeof value === 'number') writeNumber(writer, value);
  else if (typeof value === 'bigint') writeBigint(writer, value);
  else if (typeof value === 'boolean') writeByte(writer, value ? 0xf5 : 0xf4);
  else if (value === null || value === undefined) writeByte(writer, value === null ? 0xf6 : 0xf7);
  else if (value instanceof Uint8Array) writeBytes(writer, value);
  else if (value instanceof EncodedCbor) append(writer, value.encoded);
  else if (value instanceof SimpleValue) writeHead(writer, 7, value.number);
  else writeContainer(writer, value, depth + 1);
}

function writeContainer(writer: Writer, value: Tagged | readonly Cbor[] | CborMap | CborObject, depth: number): void {
  if (depth > MAX_DEPTH) throw new RangeError('CBOR is nested too deeply.');
  if (value instanceof Tagged) {
    writeHead(writer, 6, value.tag);
    write(writer, value.value, depth);
  } else if (isArray(value)) {
    writeHead(writer, 4, value.length);
    for (const member of value) write(writer, member, depth);
  } else if (isMap(value)) writeMap(writer, value, depth);
  else writeObject(writer, value as CborObject, depth);
}

function writeBytes(writer: Writer, bytes: Uint8Array): void {
  writeHead(writer, 2, bytes.length);
  append(writer, bytes);
}

/** RFC 8949 section 4.2.1: bytewise order of the encoded keys. */
function writeMap(writer: Writer, map: CborMap, depth: number): void {
  const keys = sorted([...map.keys()], compareKeys);
  writeHead(writer, 5, keys.length);
  for (const key of keys) {
    write(writer, key, depth);
    write(writer, map.get(key), depth);
  }
}

function writeObject(writer: Writer, object: CborObject, depth: number): void {
  const keys = sorted(Object.keys(object), compareTexts);
  writeHead(writer, 5, keys.length);
  for (const key of keys) {
    writeText(writer, key);
    write(writer, object[key], depth);
  }
}

/** Most maps are sorted already, and checking is cheaper than sorting. */
function sorted<Key>(keys: Key[], compare: (a: Key, b: Key) => number): Key[] {
  for (let index = 1; index < keys.length; index++) {
    if (compare(keys[index - 1] as Key, keys[index] as Key) > 0) return keys.sort(compare);
  }
  return keys;
}

function compareKeys(a: CborKey, b: CborKey): number {
  if (typeof a === 'string') return typeof b === 'string' ? compareTexts(a, b) : 1;
  if (typeof b === 'string') return -1;
  // Non-negative integers come first in ascending order, then negative ones in descending order.
  if (a < 0) return a > b ? -1 : 1;
  return b < 0 || a < b ? -1 : 1;
}

/** The head sorts shorter texts first; the length is in bytes. */
function compareTexts(a: string, b: string): number {
  const length = Buffer.byteLength(a);
  const difference = length - Buffer.byteLength(b);
  if (difference !== 0) return difference;
  if (length === a.length) return a < b ? -1 : 1;
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

function writeText(writer: Writer, text: string): void {
  // Short texts are nearly always ASCII, for which a loop is faster than a native call.
  if (text.length <= ASCII_LOOP && writeAscii(writer, text)) return;
  const length = Buffer.byteLength(text);
  writeHead(writer, 3, length);
  const offset = reserve(writer, length);
  writer.bytes.write(text, offset, 'utf8');
}

function writeAscii(writer: Writer, text: string): boolean {
  const startOffset = writer.offset;
  writeHead(writer, 3, text.length);
  const offset = reserve(writer, text.length);
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code >= 0x80) {
      writer.offset = startOffset;
      return false;
    }
    writer.bytes[offset + index] = code;
  }
  return true;
}

function writeBigint(writer: Writer, value: bigint): void {
  const argument = value < 0n ? -1n - value : value;
  if (argument <= MAX_UINT64) {
    writeHead(writer, value < 0n ? 1 : 0, argument);
    return;
  }
  // RFC 8949 section 3.4.3
  const hex = argument.toString(16);
  writeHead(writer, 6, value < 0n ? TAG.negative : TAG.unsigned);
  writeBytes(writer, Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex'));
}

function writeNumber(writer: Writer, value: number): void {
  if (!Number.isInteger(value) || Object.is(value, -0) || Math.abs(value) >= 2 ** 64) writeFloat(writer, value);
  else if (!Number.isSafeInteger(value)) writeBigint(writer, BigInt(value));
  else if (value < 0) writeHead(writer, 1, -1 - value);
  else writeHead(writer, 0, value);
}

/** RFC 8949 section 4.2.2: the shortest float with the same value. */
function writeFloat(writer: Writer, value: number): void {
  const [bytes, head] = Object.is(Math.f16round(value), value) ? [2, 0xf9] : Object.is(Math.fround(value), value) ? [4, 0xfa] : [8, 0xfb];
  writeByte(writer, head);
  const offset = reserve(writer, bytes);
  const { buffer, byteOffset } = writer.bytes;
  const view = new DataView(buffer, byteOffset + offset, bytes);
  // RFC 8949 section 4.2.2: every NaN is encoded alike.
  if (Number.isNaN(value)) view.setUint16(0, 0x7e00);
  else if (bytes === 2) view.setFloat16(0, value);
  else if (bytes === 4) view.setFloat32(0, value);
  else view.setFloat64(0, value);
}

/** A growing buffer; only the bytes before `offset` are valid. */
type Writer = { bytes: Buffer; offset: number };

const FIRST_SIZE = 256;

function newWriter(size = FIRST_SIZE): Writer {
  return { bytes: Buffer.allocUnsafe(size), offset: 0 };
}

function writtenBytes({ bytes, offset }: Writer): Buffer {
  return bytes.subarray(0, offset);
}

/** Reserves `length` bytes. @returns their offset. */
function reserve(writer: Writer, length: number): number {
  const offset = writer.offset;
  const end = offset + length;
  if (end > writer.bytes.length) {
    const larger = Buffer.allocUnsafe(Math.max(writer.bytes.length * 2, end));
    writer.bytes.copy(larger, 0, 0, offset);
    writer.bytes = larger;
  }
  writer.offset = end;
  return offset;
}

function writeByte(writer: Writer, byte: number): void {
  const offset = reserve(writer, 1);
  writer.bytes[offset] = byte;
}

function append(writer: Writer, bytes: Uint8Array): void {
  const offset = reserve(writer, bytes.length);
  writer.bytes.set(bytes, offset);
}

/** Type and argument in the shortest form (RFC 8949 section 4.2.1). */
function writeHead(writer: Writer, major: number, argument: number | bigint): void {
  const majorBits = major << 5;
  if (argument < 24) writeByte(writer, majorBits | Number(argument));
  else if (argument < 0x100) {
    const offset = reserve(writer, 2);
    writer.bytes[offset] = majorBits | 24;
    writer.bytes[offset + 1] = Number(argument);
  } else if (argument < 0x1_0000) {
    const offset = reserve(writer, 3);
    writer.bytes[offset] = majorBits | 25;
    writer.bytes.writeUInt16BE(Number(argument), offset + 1);
  } else if (argument < 0x1_0000_0000) {
    const offset = reserve(writer, 5);
    writer.bytes[offset] = majorBits | 26;
    writer.bytes.writeUInt32BE(Number(argument), offset + 1);
  } else {
    const offset = reserve(writer, 9);
    writer.bytes[offset] = majorBits | 27;
    writer.bytes.writeBigUInt64BE(BigInt(argument), offset + 1);
  }
}
