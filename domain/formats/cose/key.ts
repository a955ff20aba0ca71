import { decodeBase64url } from '../../shared/base64url.ts';
import { algorithmOf, type PublicJwk } from '../../shared/jwk.ts';
import { type Cbor, type CborMap, isBytes, isMap } from '../cbor/values.ts';
import { algorithmOfCose } from './algorithms.ts';

/** Labels of RFC 9052 section 7.1 and RFC 9053 section 7. */
const LABEL = { kty: 1, alg: 3, crv: -1, x: -2, y: -3, d: -4 } as const;
const OKP = 1;
const EC2 = 2;

type Curve = { readonly name: string; readonly kty: number; readonly number: number; readonly bytes: number };

/** RFC 9053 section 7.1: coordinates are as long as the field, leading zeros included. */
const CURVES: readonly Curve[] = [
  { name: 'P-256', kty: EC2, number: 1, bytes: 32 },
  { name: 'P-384', kty: EC2, number: 2, bytes: 48 },
  { name: 'P-521', kty: EC2, number: 3, bytes: 66 },
  { name: 'Ed25519', kty: OKP, number: 6, bytes: 32 },
];

/**
 * Parses a public signature key. `undefined` for an unsupported key: a private key, a compressed point, coordinates of another length, an
 * `alg` that contradicts the curve, an unknown curve.
 */
export function parseCoseKey(value: Cbor): PublicJwk | undefined {
  if (!isMap(value) || value.has(LABEL.d)) return undefined;
  const kty = value.get(LABEL.kty);
  const curve = CURVES.find((entry) => entry.number === value.get(LABEL.crv) && entry.kty === kty);
  const x = curve && parseCoordinate(value.get(LABEL.x), curve.bytes);
  if (curve === undefined || x === undefined) return undefined;
  const key: PublicJwk | undefined = curve.kty === OKP ? { kty: 'OKP', crv: curve.name, x } : withYCoordinate(value, curve, x);
  if (key === undefined || !value.has(LABEL.alg)) return key;
  return algorithmOfCose(value.get(LABEL.alg)) === algorithmOf(key) ? key : undefined;
}

function withYCoordinate(value: CborMap, curve: Curve, x: string): PublicJwk | undefined {
  // RFC 9053 section 7.1.1: a boolean means a compressed point, which is not supported.
  const y = parseCoordinate(value.get(LABEL.y), curve.bytes);
  return y === undefined ? undefined : { kty: 'EC', crv: curve.name, x, y };
}

function parseCoordinate(value: Cbor, bytes: number): string | undefined {
  return isBytes(value) && value.length === bytes ? value.toString('base64url') : undefined;
}

/** The COSE_Key of a public key. `undefined` for keys that `parseCoseKey` does not support. */
export function coseKeyOf(jwk: PublicJwk): CborMap | undefined {
  const curve = CURVES.find(({ name }) => name === jwk.crv);
  const x = curve && toCoordinate(jwk.x, curve.bytes);
  if (curve === undefined || x === undefined || (jwk.kty === 'EC') !== (curve.kty === EC2)) return undefined;
  const members: [number, Cbor][] = [
    [LABEL.kty, curve.kty],
    [LABEL.crv, curve.number],
    [LABEL.x, x],
  ];
  if (curve.kty === EC2) {
    const y = toCoordinate(jwk.y ?? '', curve.bytes);
    if (y === undefined) return undefined;
    members.push([LABEL.y, y]);
  }
  return new Map(members);
}

function toCoordinate(text: string, bytes: number): Buffer | undefined {
  const coordinate = decodeBase64url(text);
  return coordinate?.length === bytes ? coordinate : undefined;
}
