/** A buffer that grows; only the bytes before `at` have a meaning. */
export type Writer = { bytes: Buffer; at: number };

const FIRST_SIZE = 256;

export function newWriter(size = FIRST_SIZE): Writer {
  return { bytes: Buffer.allocUnsafe(size), at: 0 };
}

/** What has been written, not copied. */
export function written({ bytes, at }: Writer): Buffer {
  return bytes.subarray(0, at);
}

/** Makes room for `length` bytes. @returns where they begin. */
export function reserve(writer: Writer, length: number): number {
  const at = writer.at;
  const end = at + length;
  if (end > writer.bytes.length) {
    const larger = Buffer.allocUnsafe(Math.max(writer.bytes.length * 2, end));
    writer.bytes.copy(larger, 0, 0, at);
    writer.bytes = larger;
  }
  writer.at = end;
  return at;
}

export function writeByte(writer: Writer, byte: number): void {
  const at = reserve(writer, 1);
  writer.bytes[at] = byte;
}

export function append(writer: Writer, bytes: Uint8Array): void {
  const at = reserve(writer, bytes.length);
  writer.bytes.set(bytes, at);
}

/** Type and argument in the shortest form (RFC 8949 section 4.2.1). */
export function writeHead(writer: Writer, major: number, argument: number | bigint): void {
  const first = major << 5;
  if (argument < 24) {
    writeByte(writer, first | Number(argument));
  } else if (argument < 0x100) {
    const at = reserve(writer, 2);
    writer.bytes[at] = first | 24;
    writer.bytes[at + 1] = Number(argument);
  } else if (argument < 0x1_0000) {
    const at = reserve(writer, 3);
    writer.bytes[at] = first | 25;
    writer.bytes.writeUInt16BE(Number(argument), at + 1);
  } else if (argument < 0x1_0000_0000) {
    const at = reserve(writer, 5);
    writer.bytes[at] = first | 26;
    writer.bytes.writeUInt32BE(Number(argument), at + 1);
  } else {
    const at = reserve(writer, 9);
    writer.bytes[at] = first | 27;
    writer.bytes.writeBigUInt64BE(BigInt(argument), at + 1);
  }
}
