import { SIGNING_ALGORITHMS, type SigningAlgorithm } from '../../shared/jwk.ts';

/**
 * RFC 9053 section 2, by which ISO/IEC 18013-5 section 9.1.2.4 knows an algorithm, and the fully specified numbers of
 * RFC 9864 section 2. Both mean one algorithm here.
 */
const NUMBERS: Readonly<Record<SigningAlgorithm, readonly [number, number]>> = {
  ES256: [-7, -9],
  ES384: [-35, -51],
  ES512: [-36, -52],
  EdDSA: [-8, -19],
};

/** The name of an algorithm of COSE; `undefined` for everything that is no signature algorithm of this service. */
export function algorithmOfCose(number: unknown): SigningAlgorithm | undefined {
  return SIGNING_ALGORITHMS.find((algorithm) => NUMBERS[algorithm].some((known) => known === number));
}

export function coseAlgorithm(algorithm: SigningAlgorithm): number {
  return NUMBERS[algorithm][0];
}

/** Every number that means this algorithm, the one that stands in headers first. */
export function coseNumbersOf(algorithm: SigningAlgorithm): readonly number[] {
  return NUMBERS[algorithm];
}
