import { parseElement, TAG } from '../../../domain/formats/der/reader.ts';
import { CURVES, type PublicJwk, parsePublicJwk, SIGNING_ALGORITHMS, type SigningAlgorithm } from '../../../domain/shared/jwk.ts';
import { valueOrUndefined } from '../../../domain/shared/value-or-undefined.ts';
import { CKF, CKK, CKM, type MechanismInfo } from './cryptoki.ts';

type Mechanisms = {
  readonly generate: number;
  readonly sign: number;
  readonly keyType: number;
  /** Encodings of the curve that tokens accept and return (CKA_EC_PARAMS, DER); the first accepted one is used. */
  readonly curve: readonly Buffer[];
  readonly bits: number;
};

const EC = { generate: CKM.ecKeyPairGen, sign: CKM.ecdsa, keyType: CKK.ec };

/** PKCS#11 3.0, sections 2.3.3 and 2.3.5 to 2.3.14 of its current mechanisms */
export const MECHANISMS: Readonly<Record<SigningAlgorithm, Mechanisms>> = {
  ES256: { ...EC, bits: 256, curve: [Buffer.from('06082a8648ce3d030107', 'hex')] },
  ES384: { ...EC, bits: 384, curve: [Buffer.from('06052b81040022', 'hex')] },
  ES512: { ...EC, bits: 521, curve: [Buffer.from('06052b81040023', 'hex')] },
  EdDSA: {
    generate: CKM.ecEdwardsKeyPairGen,
    sign: CKM.eddsa,
    keyType: CKK.ecEdwards,
    bits: 255,
    // 1.3.101.112 of RFC 8410, the printable name of version 3.0, and the identifier that came before both
    curve: ['06032b6570', '130c656477617264733235353139', '06092b06010401da470f01'].map((hex) => Buffer.from(hex, 'hex')),
  },
};

/** Smaller key sizes are bytes, or unspecified, and do not identify curves. */
const MIN_BITS = 128;

/** Algorithms for which a token can create keys, according to its mechanisms. */
export function supportedAlgorithms(info: (mechanism: number) => MechanismInfo | undefined): SigningAlgorithm[] {
  return SIGNING_ALGORITHMS.filter((algorithm) => {
    const { generate, sign, keyType, bits } = MECHANISMS[algorithm];
    const [making, signing] = [info(generate), info(sign)];
    if (making === undefined || signing === undefined) return false;
    if ((making.flags & CKF.generateKeyPair) === 0 || (signing.flags & CKF.sign) === 0) return false;
    const { minKeySize, maxKeySize } = making;
    // EdDSA has only one curve here, and tokens disagree on its number of bits.
    return keyType === CKK.ecEdwards || maxKeySize < MIN_BITS || (minKeySize <= bits && bits <= maxKeySize);
  });
}

/**
 * @param value CKA_EC_POINT: the point, or an OCTET STRING that contains it; tokens use both.
 * @returns undefined unless it is an uncompressed point of the algorithm's curve.
 */
export function publicJwkOf(value: Buffer, algorithm: SigningAlgorithm): PublicJwk | undefined {
  const { kty, name: crv, bytes } = CURVES[algorithm];
  const length = kty === 'OKP' ? bytes : 1 + 2 * bytes;
  const point = value.length === length ? value : contentOf(value);
  if (point?.length !== length) return undefined;
  if (kty === 'OKP') return parsePublicJwk({ kty, crv, x: point.toString('base64url') });
  // SEC 1 section 2.3.3: uncompressed
  if (point[0] !== 4) return undefined;
  const [x, y] = [point.subarray(1, 1 + bytes), point.subarray(1 + bytes)];
  return parsePublicJwk({ kty, crv, x: x.toString('base64url'), y: y.toString('base64url') });
}

function contentOf(value: Buffer): Buffer | undefined {
  return valueOrUndefined(() => parseElement(value, TAG.octetString).content);
}
