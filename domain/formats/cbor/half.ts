/** Value of the 16 bits of an IEEE 754 half-precision number (RFC 8949 appendix D). */
export function readHalf(bits: number): number {
  const sign = (bits & 0x8000) === 0 ? 1 : -1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1024 + fraction) * 2 ** (exponent - 25);
}

/** The half-precision number that is exactly the single-precision one of these 32 bits, if there is one. */
export function halfOf(single: number): number | undefined {
  const sign = (single >>> 16) & 0x8000;
  const exponent = (single >>> 23) & 0xff;
  const fraction = single & 0x7fffff;
  if (exponent === 0) return fraction === 0 ? sign : undefined;
  if (exponent === 0xff) return fraction === 0 ? sign | 0x7c00 : 0x7e00;
  const power = exponent - 127;
  if (power >= -14 && power <= 15) {
    return (fraction & 0x1fff) === 0 ? sign | ((power + 15) << 10) | (fraction >> 13) : undefined;
  }
  if (power > 15 || power < -24) return undefined;
  // A subnormal number: the leading one becomes visible and moves down.
  const significand = fraction | 0x800000;
  const shift = -1 - power;
  return (significand & ((1 << shift) - 1)) === 0 ? sign | (significand >> shift) : undefined;
}
