import { Refusal } from '../../shared/refusal.ts';

/** A place in bytes that are read; `items` counts what has been read already. */
export type Cursor = { readonly bytes: Buffer; at: number; items: number };

export function readByte(cursor: Cursor): number {
  const byte = cursor.bytes[cursor.at];
  if (byte === undefined) throw malformed('truncated');
  cursor.at++;
  return byte;
}

/** Checks that `length` bytes follow, and moves behind them. @returns where they begin. */
export function skip(cursor: Cursor, length: number): number {
  const start = cursor.at;
  if (length > cursor.bytes.length - start) throw malformed('truncated');
  cursor.at = start + length;
  return start;
}

/** RFC 8949 section 3: the argument of a head, whether or not it is the shortest form. */
export function readArgument(cursor: Cursor, info: number): number | bigint {
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
export function readLength(cursor: Cursor, info: number, bytesEach: number): number {
  const length = readArgument(cursor, info);
  if (typeof length === 'bigint' || length * bytesEach > cursor.bytes.length - cursor.at) {
    throw malformed('truncated');
  }
  return length;
}

export function malformed(detail: string): Refusal {
  return new Refusal('malformed', `CBOR: ${detail}`);
}
