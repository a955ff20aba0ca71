import { readFileSync } from 'node:fs';
import { Failure } from '../../../domain/shared/failure.ts';
import type { PublicJwk } from '../../../domain/shared/jwk.ts';

const SEEDS = JSON.parse(readFileSync(new URL('../seeds.json', import.meta.url), 'utf8')) as Readonly<Record<string, string>>;

/** One of the inputs of `seeds.json`, most of which `make-seeds.ts` writes. The file has them in base64. */
export function seed(name: string): Buffer {
  const input = SEEDS[name];
  if (input === undefined) throw new Error(`seeds.json has no seed "${name}"`);
  return Buffer.from(input, 'base64');
}

/** The size of each seed in bytes. */
export const seedSizes = (): number[] => Object.keys(SEEDS).map((name) => seed(name).length);

/** Keys of the signers and recipients of the seeds. */
export const KEYS = JSON.parse(seed('keys').toString()) as {
  readonly issuer: PublicJwk;
  readonly holder: PublicJwk;
  readonly encryption: { readonly publicJwk: PublicJwk & { kid: string }; readonly d: string };
};

export const text = (input: Buffer) => input.toString('utf8');

/** Header fields, and inputs of several parts, stand in lines of their own. */
export const lines = (input: Buffer) => text(input).split('\n');

export const JOSE_WORDS = [
  ...['alg', 'typ', 'crit', 'b64', 'x5c', 'kid', 'jwk', 'none', 'HS256', 'ES256', 'ES384', 'EdDSA', 'Ed25519', 'JWT'],
  ...['kty', 'crv', 'EC', 'OKP', 'P-256', 'P-384', 'P-521', 'x', 'y', 'd', 'cnf', 'iat', 'exp', 'nbf', 'aud', 'iss', 'sub'],
  ...['jti', 'nonce', 'status', 'status_list', 'application/', '.', '..', 'e30', 'e30.e30.', '1e999', 'sigT', 'x5t#S256'],
];
export const JSON_WORDS = [
  ...['{', '}', '[', ']', ',', ':', '"', '\\', '\\u0000', '\\ud800', '\\u005f', 'null', 'true', 'false', '1e999', '-0'],
  ...['9007199254740993', '12345678901234567890', '0.1', '"__proto__":1', '"a":1,"a":2', '\uFEFF', '\u2028', '/'],
];
export const CBOR_WORDS = [
  ...['80', 'a0', '9f', 'bf', '5f', '7f', 'ff', 'f4', 'f6', 'f7', 'f97e00', 'f97c00', 'fa7f800000', 'fb7ff0000000000000'],
  ...['1bffffffffffffffff', '3bffffffffffffffff', '3b001fffffffffffff', 'd818', 'd81841a0', 'd2', 'c0', 'c1', 'c240', 'c249'],
  ...['d903ec', 'd9d9f7', 'f818', 'f8ff', 'fc', '9bffffffffffffffff', 'bb0000000100000000', '60', '6100', '62c328', 'a10126'],
].map((hex) => Buffer.from(hex, 'hex'));
export const DER_WORDS = [
  ...['3000', '3003020100', '0101ff', '0500', '020100', '02020080', '0203010001', '030100', '0303000000', '0400', '0600'],
  ...['0603550403', '0603551d13', '0603551d0f', '0603551d25', '0603551d23', '0603551d0e', '06072a8648ce3d0201', '06092a864886f70d010101'],
  ...[
    '0c00',
    '1300',
    '170d3439313233313233353935395a',
    '180f39393939313233313233353935395a',
    '80',
    '8180',
    '820100',
    '830fffff',
    'a000',
    'a300',
  ],
].map((hex) => Buffer.from(hex, 'hex'));

/** Runs an additional check, whose rejection does not skip the others. */
export function attempt(work: () => unknown): void {
  try {
    work();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
  }
}
