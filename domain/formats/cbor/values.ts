/** Map keys: integers and texts, as used by COSE and mdoc. */
export type CborKey = string | number | bigint;
export type CborMap = ReadonlyMap<CborKey, Cbor>;
/** A map with text keys, for encoding. */
export type CborObject = { readonly [name: string]: Cbor };

/**
 * A data item (RFC 8949 section 2). Decoding returns byte strings as `Buffer`, maps as `Map`, and integers beyond the safe range as
 * `bigint`.
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

/** A simple value without predefined meaning (RFC 8949 section 3.3). */
export class SimpleValue {
  readonly number: number;

  constructor(number: number) {
    this.number = number;
  }
}

/**
 * Tag 24: an item inside a byte string (RFC 8949 section 3.4.5.1). `encoded` is tag, head of the byte string and content exactly as
 * received or sent, because digests and signatures cover it; `content` is the inner item.
 */
export class EncodedCbor {
  readonly content: Buffer;
  readonly encoded: Buffer;

  constructor(content: Buffer, encoded: Buffer) {
    this.content = content;
    this.encoded = encoded;
  }
}

/** @param text `YYYY-MM-DD` (RFC 8943 section 2). */
export function fullDate(text: string): Tagged {
  return new Tagged(TAG.fullDate, text);
}

/** `tdate` of ISO/IEC 18013-5 section 7.2.1: UTC without fractions of seconds, which are truncated. */
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

/** A non-negative safe integer. */
export function isUint(value: Cbor): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
