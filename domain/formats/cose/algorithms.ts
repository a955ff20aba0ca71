import type { SigningAlgorithm } from '../../shared/jwk.ts';

/** RFC 9053 section 2 and the fully specified numbers of RFC 9864 section 2. Both mean one algorithm here. */
const NAMES: ReadonlyMap<unknown, SigningAlgorithm> = new Map([
  [-7, 'ES256'],
  [-9, 'ES256'],
  [-35, 'ES384'],
  [-51, 'ES384'],
  [-36, 'ES512'],
  [-52, 'ES512'],
  [-8, 'EdDSA'],
  [-19, 'EdDSA'],
]);

const NUMBERS: Readonly<Record<SigningAlgorithm, number>> = {
  ES256: -7,
  ES384: -35,
  ES512: -36,
  EdDSA: -8,
};

/** The name of an algorithm of COSE; `undefined` for everything that is no signature algorithm of this service. */
export function algorithmOfCose(number: unknown): SigningAlgorithm | undefined {
  return NAMES.get(number);
}

/** The number that ISO/IEC 18013-5 section 9.1.2.4 knows an algorithm by. */
export function coseAlgorithm(algorithm: SigningAlgorithm): number {
  return NUMBERS[algorithm];
}

/** Every number that means this algorithm, the one that stands in headers first. */
export function coseNumbersOf(algorithm: SigningAlgorithm): readonly number[] {
  const others = [...NAMES].flatMap(([number, name]) => (name === algorithm ? [Number(number)] : []));
  return [...new Set([coseAlgorithm(algorithm), ...others])];
}
