import { deflateSync } from 'node:zlib';
import { NodeSignatures } from '../../../adapters/crypto/signatures.ts';
import { parseCompactJws } from '../../../domain/formats/jose/compact.ts';
import { isJsonObject, parseJson } from '../../../domain/shared/json.ts';
import { Refusal } from '../../../domain/shared/refusal.ts';
import { parseAttestedStatuses } from '../../../domain/status-lists/attested-status.ts';
import { capacityOf, isEntryBits, readStatus } from '../../../domain/status-lists/bits.ts';
import { decompressList } from '../../../domain/status-lists/codec.ts';
import { parseStatusReference, statusAt, verdictOf } from '../../../domain/status-lists/reference.ts';
import { assertStatusListHeader, parseStatusListClaims } from '../../../domain/status-lists/token.ts';
import { parseStatusListCwt } from '../../../domain/status-lists/token-cwt.ts';
import { NOW, STATUS_URI } from '../constants.ts';
import { ensure, isInstanceOfAny, type Target } from '../engine/target.ts';
import { CBOR_WORDS, JOSE_WORDS, KEYS, seed, text } from './seeds.ts';

const signatures = new NodeSignatures();
const expected = isInstanceOfAny(Refusal);
const goodJwt = text(seed('status-jwt'));
const goodCwt = parseStatusListCwt(seed('status-cwt'));

function readAll(payload: unknown): void {
  const { bits, lst } = parseStatusListClaims(payload, STATUS_URI, NOW);
  const list = decompressList(lst, bits);
  for (const index of [0, 1, 7, 8, capacityOf(list, bits) - 1]) {
    if (index >= capacityOf(list, bits)) continue;
    const byte = list[Math.floor((index * bits) / 8)] ?? 0;
    const expectedStatus = Math.floor(byte / 2 ** ((index * bits) % 8)) % 2 ** bits;
    ensure(statusAt(list, bits, index) === expectedStatus, 'an entry is what stands in its bits');
    ensure(expectedStatus === 0 || verdictOf(expectedStatus) !== 'valid', 'only zero is valid');
  }
}

function jwt(input: Buffer): void {
  const jws = parseCompactJws(text(input));
  if (jws === undefined) return;
  assertStatusListHeader(jws.header);
  if (signatures.verify(KEYS.issuer, jws.signingInput, jws.signature)) {
    ensure(text(input) === goodJwt, 'nothing verifies that nobody signed');
  }
  readAll(jws.payload);
}

function cwt(input: Buffer): void {
  const { toVerify, signature, payload } = parseStatusListCwt(input);
  if (signatures.verify(KEYS.issuer, toVerify, signature)) {
    ensure(JSON.stringify(payload) === JSON.stringify(goodCwt.payload), 'nothing verifies that nobody signed');
  }
  readAll(payload);
}

/** The first byte says how wide entries are, the second which one is read. */
function list(input: Buffer): void {
  const [bits = 1, index = 0] = input;
  if (!isEntryBits(bits)) return;
  const inflated = decompressList(input.subarray(2).toString('base64url'), bits);
  if (index < capacityOf(inflated, bits)) readStatus(inflated, bits, index);
}

export const STATUS_LISTS: readonly Target[] = [
  { name: 'status-list-jwt', expected, seeds: [seed('status-jwt')], dictionary: [...JOSE_WORDS, 'lst', 'bits', 'ttl'], decode: jwt },
  { name: 'status-list-cwt', expected, seeds: [seed('status-cwt')], dictionary: [...CBOR_WORDS, 'lst', 'bits'], decode: cwt },
  {
    name: 'status-list',
    expected,
    seeds: [1, 2, 4, 8].map((bits) => Buffer.concat([Buffer.of(bits, 1), deflateSync(Buffer.alloc(20, bits))])),
    dictionary: [deflateSync(Buffer.alloc(100_000)).subarray(2, -4)],
    decode: list,
  },
  {
    name: 'status-reference',
    expected,
    seeds: [JSON.stringify({ status: { status_list: { idx: 3, uri: STATUS_URI } } })],
    dictionary: ['status', 'status_list', 'idx', 'uri', 'http:', 'data:', ' '],
    decode: (input) => {
      const claims = parseJson(text(input));
      const reference = isJsonObject(claims) ? parseStatusReference(claims) : undefined;
      if (reference !== undefined) ensure(reference.idx >= 0, 'an index is a place');
    },
  },
  {
    name: 'attested-status',
    expected,
    seeds: ['status', 'client_status', 'key_storage_status'].map((claimName) => {
      const status = { status_list: { idx: 7, uri: STATUS_URI } };
      const exp = NOW.getTime() / 1000 + 60;
      return JSON.stringify(claimName === 'status' ? { status } : { [claimName]: { status, exp } });
    }),
    dictionary: ['client_status', 'key_storage_status', 'status', 'status_list', 'idx', 'uri', 'exp', 'https:'],
    decode: (input) => {
      const claims = parseJson(text(input));
      if (!isJsonObject(claims)) return;
      for (const { reference, keptUntil } of parseAttestedStatuses(claims, NOW)) {
        ensure(reference.idx >= 0, 'an index is a place');
        ensure(keptUntil === undefined || keptUntil * 1000 > NOW.getTime(), 'what is over is refused');
      }
    },
  },
];
