import { isDeepStrictEqual } from 'node:util';
import { decodeCbor } from '../../../domain/formats/cbor/decode.ts';
import { encodeCbor } from '../../../domain/formats/cbor/encode.ts';
import { toJson } from '../../../domain/formats/cbor/to-json.ts';
import { isMap, Tagged } from '../../../domain/formats/cbor/values.ts';
import { coseKeyOf, parseCoseKey } from '../../../domain/formats/cose/key.ts';
import { parseCoseAlgorithm, parseCoseSign1, parseX5chain, sigStructure } from '../../../domain/formats/cose/sign1.ts';
import { SIGNING_ALGORITHMS } from '../../../domain/shared/jwk.ts';
import { Refusal } from '../../../domain/shared/refusal.ts';
import { readTree, writeTree } from '../engine/mutate.ts';
import { ensure, isInstanceOfAny, type Target } from '../engine/target.ts';
import { CBOR_WORDS, KEYS, seed, text } from './seeds.ts';

const expected = isInstanceOfAny(Refusal);
const mdoc = Buffer.from(text(seed('mdoc')), 'base64url');

function cbor(input: Buffer): void {
  const value = decodeCbor(input);
  const reencoded = encodeCbor(value);
  ensure(isDeepStrictEqual(toIntegers(decodeCbor(reencoded)), toIntegers(value)), 'what is written is read as it was');
  ensure(encodeCbor(decodeCbor(reencoded)).equals(reencoded), 'what is written is written alike');
  const parsedTree = readTree(input);
  if (parsedTree !== undefined) ensure(writeTree(parsedTree).equals(input), 'other readers see the same');
  const json = toJson(value);
  ensure(isDeepStrictEqual(JSON.parse(JSON.stringify(json)), withoutNegativeZero(json)), 'what is shown is JSON');
}

/** An integer is written as one (RFC 8949 section 4.2.2), though it was read as a float. */
function toIntegers(value: unknown): unknown {
  if (typeof value === 'number') return Number.isInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) return value.map(toIntegers);
  if (value instanceof Map) return new Map([...value].map(([key, item]) => [toIntegers(key), toIntegers(item)]));
  return value instanceof Tagged ? new Tagged(value.tag, toIntegers(value.value) as never) : value;
}

/** JSON.stringify writes zero for it. */
function withoutNegativeZero(json: unknown): unknown {
  if (Object.is(json, -0)) return 0;
  if (Array.isArray(json)) return json.map(withoutNegativeZero);
  if (typeof json !== 'object' || json === null) return json;
  return Object.fromEntries(Object.entries(json).map(([name, item]) => [name, withoutNegativeZero(item)]));
}

function sign1(input: Buffer): void {
  const coseSign1 = parseCoseSign1(decodeCbor(input));
  ensure(coseSign1.protectedBytes.length === 0 || isMap(decodeCbor(coseSign1.protectedBytes)), 'the header is a map');
  parseX5chain(coseSign1.protectedHeader);
  parseX5chain(coseSign1.unprotectedHeader);
  sigStructure(coseSign1.protectedBytes, coseSign1.payload ?? Buffer.alloc(0));
  parseCoseAlgorithm(coseSign1, SIGNING_ALGORITHMS, 'issuer_alg');
  ensure(!coseSign1.protectedHeader.has(2), 'no critical header is passed over');
}

function coseKey(input: Buffer): void {
  const key = parseCoseKey(decodeCbor(input));
  if (key === undefined) return;
  const reencoded = coseKeyOf(key);
  ensure(reencoded !== undefined && isDeepStrictEqual(parseCoseKey(reencoded), key), 'a key is written as it was read');
}

const ed25519 = { kty: 'OKP', crv: 'Ed25519', x: 'A'.repeat(43) } as const;
const keySeeds = [KEYS.holder, ed25519].map((key) => encodeCbor(coseKeyOf(key)));

export const CBOR: readonly Target[] = [
  {
    name: 'cbor',
    expected,
    seeds: [
      mdoc,
      ...[
        '83010203',
        'a2616101616202',
        '9f018202039f0405ffff',
        'bf61610161629f0203ffff',
        '5f42010243030405ff',
        '7f657374726561646d696e67ff',
      ].map((hex) => Buffer.from(hex, 'hex')),
      ...[
        'c074323031332d30332d32315432303a30343a30305a',
        'c11a514b67b0',
        'c249010000000000000000',
        'd818456449455446',
        'f90001',
        'fb3ff199999999999a',
      ].map((hex) => Buffer.from(hex, 'hex')),
    ],
    dictionary: CBOR_WORDS,
    decode: cbor,
  },
  { name: 'cose-sign1', expected, seeds: [seed('status-cwt')], dictionary: CBOR_WORDS, decode: sign1 },
  { name: 'cose-key', expected, seeds: keySeeds, dictionary: CBOR_WORDS, decode: coseKey },
];
