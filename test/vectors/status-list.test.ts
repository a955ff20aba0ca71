import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { NodeSignatures } from '../../adapters/crypto/signatures.ts';
import { decodeCbor } from '../../domain/formats/cbor/decode.ts';
import type { CborMap } from '../../domain/formats/cbor/values.ts';
import { parseCompactJws } from '../../domain/formats/jose/compact.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { PublicJwk } from '../../domain/shared/jwk.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import { type EntryBits, packEntries, readStatus, writeStatus } from '../../domain/status-lists/bits.ts';
import { cacheLifetime, cacheState } from '../../domain/status-lists/cache.ts';
import { decompressList } from '../../domain/status-lists/codec.ts';
import { parseStatusReference, type StatusVerdict, statusAt, verdictOf } from '../../domain/status-lists/reference.ts';
import { assertStatusListHeader, parseStatusListClaims, statusListClaims } from '../../domain/status-lists/token.ts';
import { compressList } from '../support/compress-list.ts';

type Vectors = {
  readonly now: number;
  readonly encoding: readonly {
    name: string;
    bits: EntryBits;
    entries: number;
    raw_length: number;
    raw_sha256: string;
    raw_hex?: string;
    lst: string;
    cbor_hex: string;
    nonzero: Readonly<Record<string, number>>;
    statuses?: readonly number[];
  }[];
  readonly writes: readonly {
    bits: EntryBits;
    capacity: number;
    ops: readonly (readonly [number, number])[];
    raw_hex?: string;
    error?: string;
  }[];
  readonly tokens: {
    readonly public_key_jwk: PublicJwk;
    readonly jwt: { readonly compact: string; readonly payload: JsonObject; readonly header: JsonObject };
  };
  readonly invalid_lists: readonly { name: string; status_list: JsonObject; idx: unknown }[];
  readonly status_policy: readonly { status: number; expect: string }[];
  readonly token_checks: readonly { name: string; header: JsonObject; payload: JsonObject; uri: string; idx: number; expect: string }[];
  readonly cache_checks: readonly {
    name: string;
    exp: number;
    ttl: number | null;
    fetched_at: number;
    now: number;
    expect: 'use_cached' | 'refetch';
  }[];
};

const vectors = JSON.parse(readFileSync(new URL('./status-list.json', import.meta.url), 'utf8')) as Vectors;
const NOW = new Date(vectors.now * 1000);
const URI = 'https://example.com/statuslists/1';

const WORD_OF_VERDICT: Record<StatusVerdict, string> = {
  valid: 'valid',
  status_revoked: 'revoked',
  status_suspended: 'suspended',
  status_unknown: 'reject_unknown',
};

// The group `historical_checks` is for clients that resolve past states; this verifier never does.
describe('status list vectors', () => {
  describe('encoding', () => {
    for (const list of vectors.encoding) {
      it(list.name, () => {
        const { bits, entries, nonzero } = list;
        const form = decodeCbor(Buffer.from(list.cbor_hex, 'hex')) as CborMap;
        expect(form.get('bits')).to.equal(bits);
        expect((form.get('lst') as Buffer).toString('base64url'), 'the form in CBOR').to.equal(list.lst);
        const sparse = Object.entries(nonzero).map(([index, status]) => ({ index: Number(index), status }));
        const bytes = packEntries(bits, entries, sparse);
        expect(bytes.length).to.equal(list.raw_length);
        expect(createHash('sha256').update(bytes).digest('hex')).to.equal(list.raw_sha256);
        if (list.raw_hex !== undefined) expect(bytes.toString('hex')).to.equal(list.raw_hex);
        expect(decompressList(list.lst, bits).equals(bytes)).to.equal(true);
        expect(decompressList(compressList(bytes), bits).equals(bytes)).to.equal(true);
        for (const { index, status } of sparse) expect(readStatus(bytes, bits, index)).to.equal(status);
        list.statuses?.forEach((status, i) => {
          expect(readStatus(bytes, bits, i)).to.equal(status);
        });
      });
    }
  });

  describe('writes', () => {
    for (const [i, { bits, capacity, ops, raw_hex, error }] of vectors.writes.entries()) {
      it(`${i}: ${JSON.stringify(ops)}`, () => {
        const bytes = packEntries(bits, capacity, []);
        const write = () => {
          for (const [index, status] of ops) writeStatus(bytes, bits, index, status);
        };
        if (error !== undefined) {
          expect(write).to.throw(RangeError).with.property('message', error);
          expect(bytes.every((byte) => byte === 0)).to.equal(true);
          return;
        }
        write();
        expect(bytes.toString('hex')).to.equal(raw_hex);
        const entries = ops.map(([index, status]) => ({ index, status }));
        expect(packEntries(bits, capacity, entries).toString('hex')).to.equal(raw_hex);
      });
    }
  });

  describe('invalid lists', () => {
    for (const { name, status_list, idx } of vectors.invalid_lists) {
      it(name, () => {
        const payload = { sub: URI, iat: vectors.now, status_list };
        expect(() => check(payload, URI, idx))
          .to.throw(Refusal)
          .with.property('reason', 'status_invalid');
      });
    }
  });

  describe('status policy', () => {
    for (const { status, expect: expectedResult } of vectors.status_policy) {
      it(`${status} is ${expectedResult}`, () => {
        expect(WORD_OF_VERDICT[verdictOf(status)]).to.equal(expectedResult);
      });
    }
  });

  describe('token checks', () => {
    for (const { name, header, payload, uri, idx, expect: expectedResult } of vectors.token_checks) {
      it(name, () => {
        const checkToken = () => {
          assertStatusListHeader(header);
          return WORD_OF_VERDICT[check(payload, uri, idx)];
        };
        if (expectedResult === 'reject') expect(checkToken).to.throw(Refusal).with.property('reason', 'status_invalid');
        else expect(checkToken()).to.equal(expectedResult);
      });
    }

    it('the sample token of the specification', () => {
      const { compact, header, payload } = vectors.tokens.jwt;
      const jws = parseCompactJws(compact);
      expect([jws?.header, jws?.payload]).to.deep.equal([header, payload]);
      const { signingInput = '', signature = Buffer.alloc(0) } = jws ?? {};
      const key = vectors.tokens.public_key_jwk;
      expect(new NodeSignatures().verify(key, signingInput, signature)).to.equal(true);
      expect(new NodeSignatures().verify(key, `${signingInput}A`, signature)).to.equal(false);
      assertStatusListHeader(header);
      expect(parseStatusListClaims(payload, URI, NOW)).to.deep.equal({
        bits: 1,
        lst: 'eNrbuRgAAhcBXQ',
        iat: 1686920170,
        exp: 2291720170,
        ttl: 43200,
      });
    });

    it('a token of this service', () => {
      const claims = statusListClaims({ uri: URI, bits: 1, lst: 'x', issuedAt: NOW, ttlSeconds: 300 });
      expect(claims).to.deep.equal({ sub: URI, iat: vectors.now, exp: vectors.now + 300, ttl: 300, status_list: { bits: 1, lst: 'x' } });
    });
  });

  describe('cache checks', () => {
    for (const { name, exp, ttl, fetched_at, now, expect: expectedResult } of vectors.cache_checks) {
      it(name, () => {
        const fetchedAt = new Date(fetched_at * 1000);
        const lifetime = cacheLifetime({ exp, fetchedAt, ...(ttl !== null && { ttl }) });
        const state = cacheState(lifetime, new Date(now * 1000));
        expect(state === 'fresh' ? 'use_cached' : 'refetch').to.equal(expectedResult);
        if (now > exp) expect(state).to.equal('expired');
      });
    }

    it('limits a ttl and applies the default to lists without limits', () => {
      const seconds = (token: { ttl?: number }) =>
        (cacheLifetime({ ...token, fetchedAt: NOW }).freshUntil.getTime() - NOW.getTime()) / 1000;
      const keptSeconds = [{ ttl: 1 }, { ttl: 10 }, { ttl: 59 }, { ttl: 1e9 }, {}].map(seconds);
      expect(keptSeconds).to.deep.equal([10, 10, 59, 86400, 300]);
    });

    it('allows a stale copy only until exp', () => {
      const lifetime = cacheLifetime({ ttl: 300, exp: vectors.now + 1000, fetchedAt: NOW });
      const states = [299, 300, 999, 1000].map((s) => cacheState(lifetime, new Date(NOW.getTime() + s * 1000)));
      expect(states).to.deep.equal(['fresh', 'stale', 'stale', 'expired']);
    });
  });
});

function check(payload: JsonObject, uri: string, idx: unknown): StatusVerdict {
  const reference = parseStatusReference({ status: { status_list: { idx, uri } as JsonObject } });
  if (reference === undefined) throw new Error('no reference');
  const { bits, lst } = parseStatusListClaims(payload, reference.uri, NOW);
  return verdictOf(statusAt(decompressList(lst, bits), bits, reference.idx));
}
