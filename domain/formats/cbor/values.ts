/** Keys of maps: integers and text, all that COSE and mdoc use. */
export type CborKey = string | number | bigint;
export type CborMap = ReadonlyMap<CborKey, Cbor>;
/** A map with text keys, for writing. */
export type CborObject = { readonly [name: string]: Cbor };

/**
 * A data item (RFC 8949 section 2). Reading gives byte strings as `Buffer`, maps as `Map`, and integers as
 * `bigint` only where a number cannot hold them.
 */
export type Cbor =
  | number
  | bigint
  | string
  | boolean
  | null
  | undefined
  | Uint8Array
  | readonly Cbor[]
  | CborMap
  | CborObject
  | Tagged
  | EncodedCbor
  | SimpleValue;

export const TAG = { dateTime: 0, epoch: 1, unsigned: 2, negative: 3, encoded: 24, fullDate: 1004 } as const;

/** An item with a tag other than 24 (RFC 8949 section 3.4). */
export class Tagged {
  readonly tag: number | bigint;
  readonly value: Cbor;

  constructor(tag: number | bigint, value: Cbor) {
    this.tag = tag;
    this.value = value;
  }
}

/** A simple value without a meaning of its own (RFC 8949 section 3.3). */
export class SimpleValue {
  readonly number: number;

  constructor(number: number) {
    this.number = number;
  }
}

/**
 * Tag 24: an item inside a byte string (RFC 8949 section 3.4.5.1). `whole` is tag, head of the byte string and
 * content exactly as received or sent, because digests and signatures cover it; `content` is the inner item.
 */
export class EncodedCbor {
  readonly content: Buffer;
  readonly whole: Buffer;

  constructor(content: Buffer, whole: Buffer) {
    this.content = content;
    this.whole = whole;
  }
}

/** @param text `YYYY-MM-DD` (RFC 8943 section 2). */
export function fullDate(text: string): Tagged {
  return new Tagged(TAG.fullDate, text);
}

/** `tdate` of ISO/IEC 18013-5 section 7.2.1: UTC and no fractions of seconds, which are cut off. */
export function tdate(time: Date): Tagged {
  return new Tagged(TAG.dateTime, `${time.toISOString().slice(0, 19)}Z`);
}

export function isMap(value: Cbor): value is CborMap {
  return value instanceof Map;
}

export function isBytes(value: Cbor): value is Buffer {
  return Buffer.isBuffer(value);
}

export function isArray(value: Cbor): value is readonly Cbor[] {
  return Array.isArray(value);
}

/** A non-negative integer that a number can hold. */
export function isUint(value: Cbor): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
