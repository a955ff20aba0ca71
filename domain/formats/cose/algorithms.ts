import { SIGNING_ALGORITHMS, type SigningAlgorithm } from '../../shared/jwk.ts';

/**
 * Algorithm numbers of RFC 9053 section 2, used by ISO/IEC 18013-5 section 9.1.2.4, and the fully specified numbers of RFC 9864 section 2.
 * Both denote the same algorithm here.
 */
const NUMBERS: Readonly<Record<SigningAlgorithm, readonly [number, number]>> = {
  ES256: [-7, -9],
  ES384: [-35, -51],
  ES512: [-36, -52],
  EdDSA: [-8, -19],
};

/** The name of a COSE algorithm; `undefined` for unsupported algorithms. */
export function algorithmOfCose(number: unknown): SigningAlgorithm | undefined {
  return SIGNING_ALGORITHMS.find((algorithm) => NUMBERS[algorithm].some((candidate) => candidate === number));
}

export function coseAlgorithm(algorithm: SigningAlgorithm): number {
  return NUMBERS[algorithm][0];
}

/** All numbers of this algorithm; the first one is used in headers. */
export function coseNumbersOf(algorithm: SigningAlgorithm): readonly number[] {
  return NUMBERS[algorithm];
}
