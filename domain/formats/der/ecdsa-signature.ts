/**
 * An ECDSA signature has two forms: `r` and `s` concatenated, each as long as the curve (RFC 7518 section 3.4), and the DER sequence of RFC
 * 3279 section 2.2.3. Protocols use the first, and cryptographic libraries are much faster with the second.
 */

const SEQUENCE = 0x30;
const INTEGER = 0x02;
/** Longer lengths take an additional byte for the number of length bytes. */
const LONG = 0x80;

/** @param raw `r` and `s`, of equal length. */
export function derSignature(raw: Uint8Array): Buffer {
  const half = raw.length / 2;
  const der = Buffer.allocUnsafe(raw.length + 9);
  const end = writeInteger(der, writeInteger(der, 3, raw, 0, half), raw, half, raw.length);
  const length = end - 3;
  // The header is one byte shorter if the length fits into one byte.
  const start = length < LONG ? 1 : 0;
  der[start] = SEQUENCE;
  if (start === 0) der[1] = LONG + 1;
  der[2] = length;
  return der.subarray(start, end);
}

/** Copies byte by byte, because views take longer. @returns the offset of the integer's end. */
function writeInteger(der: Buffer, start: number, raw: Uint8Array, from: number, to: number): number {
  let firstDigit = from;
  while (firstDigit < to - 1 && raw[firstDigit] === 0) firstDigit++;
  let writeOffset = start + 2;
  // A set top bit would mean a negative number.
  if ((raw[firstDigit] ?? 0) >> 7 === 1) der[writeOffset++] = 0;
  for (let position = firstDigit; position < to; position++) der[writeOffset++] = raw[position] ?? 0;
  der[start] = INTEGER;
  der[start + 1] = writeOffset - start - 2;
  return writeOffset;
}

/**
 * @param der created by a library.
 * @param size bytes of the curve.
 */
export function rawSignature(der: Uint8Array, size: number): Buffer {
  const raw = Buffer.alloc(2 * size);
  let offset = der[1] === LONG + 1 ? 3 : 2;
  for (const end of [size, 2 * size]) {
    const length = der[offset + 1] ?? 0;
    const writeOffset = offset + 2 + length;
    // A leading sign byte is not part of the number.
    const digits = der.subarray(Math.max(offset + 2, writeOffset - size), writeOffset);
    raw.set(digits, end - digits.length);
    offset = writeOffset;
  }
  return raw;
}
