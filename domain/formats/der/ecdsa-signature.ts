/**
 * An ECDSA signature has two forms: `r` and `s` side by side, each as long as the curve (RFC 7518 section 3.4), and the DER sequence of RFC
 * 3279 section 2.2.3. Protocols use the first, and cryptographic libraries work much faster with the second.
 */

const SEQUENCE = 0x30;
const INTEGER = 0x02;
/** Lengths from here on take a byte that says how many follow. */
const LONG = 0x80;

/** @param raw `r` and `s`, of equal length. */
export function derSignature(raw: Uint8Array): Buffer {
  const half = raw.length / 2;
  const der = Buffer.allocUnsafe(raw.length + 9);
  const end = writeInteger(der, writeInteger(der, 3, raw, 0, half), raw, half, raw.length);
  const length = end - 3;
  // The header is one byte shorter where the length needs no byte of its own.
  const start = length < LONG ? 1 : 0;
  der[start] = SEQUENCE;
  if (start === 0) der[1] = LONG + 1;
  der[2] = length;
  return der.subarray(start, end);
}

/** Byte by byte, since views and copies of them take longer. @returns where the integer ends. */
function writeInteger(der: Buffer, at: number, raw: Uint8Array, from: number, to: number): number {
  let first = from;
  while (first < to - 1 && raw[first] === 0) first++;
  let next = at + 2;
  // A set top bit would mean a negative number.
  if ((raw[first] ?? 0) >> 7 === 1) der[next++] = 0;
  for (let place = first; place < to; place++) der[next++] = raw[place] ?? 0;
  der[at] = INTEGER;
  der[at + 1] = next - at - 2;
  return next;
}

/**
 * @param der as a library made it.
 * @param size bytes of the curve.
 */
export function rawSignature(der: Uint8Array, size: number): Buffer {
  const raw = Buffer.alloc(2 * size);
  let at = der[1] === LONG + 1 ? 3 : 2;
  for (const end of [size, 2 * size]) {
    const length = der[at + 1] ?? 0;
    const next = at + 2 + length;
    // A sign byte is no part of the number.
    const digits = der.subarray(Math.max(at + 2, next - size), next);
    raw.set(digits, end - digits.length);
    at = next;
  }
  return raw;
}
