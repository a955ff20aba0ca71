import { expect } from 'chai';
import { decodeCbor } from '../../../domain/formats/cbor/decode.ts';
import { encodeCbor } from '../../../domain/formats/cbor/encode.ts';
import { type Cbor, type CborMap, Tagged } from '../../../domain/formats/cbor/values.ts';
import { Refusal } from '../../../domain/shared/refusal.ts';
import {
  entryFault,
  isEntryBits,
  packEntries,
  readStatus,
  roundCapacity,
  writeStatus,
} from '../../../domain/status-lists/bits.ts';
import { decompressList } from '../../../domain/status-lists/codec.ts';
import { readStatusReference, statusAt, verdictOf } from '../../../domain/status-lists/reference.ts';
import {
  checkStatusListHeader,
  readStatusListClaims,
  type StatusListToBuild,
  statusListClaims,
} from '../../../domain/status-lists/token.ts';
import {
  openStatusListCwt,
  prepareStatusListCwt,
  STATUS_LIST_CWT_TYPE,
} from '../../../domain/status-lists/token-cwt.ts';
import { compressList } from '../../support/compress-list.ts';

const URI = 'https://issuer.example/status/1';
const NOW = new Date('2027-01-15T08:00:00Z');
const IAT = NOW.getTime() / 1000;
const LST = compressList(Buffer.from([1, 2]));

/** Why something is refused; all of it is about the status. */
function whyNot(work: () => unknown): string {
  try {
    work();
    return 'taken';
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    expect(error.reason).to.equal('status_invalid');
    return error.message.replace('status_invalid: ', '');
  }
}

describe('The entries of a status list', () => {
  it('have a width, and a place in the list', () => {
    expect([1, 2, 4, 8, 0, 3, 16, '1', undefined].map(isEntryBits)).to.deep.equal([
      ...[true, true, true, true, false, false, false, false, false],
    ]);
    expect([roundCapacity(1, 9), roundCapacity(8, 9)]).to.deep.equal([16, 9]);
    for (const [index, status, fault] of [
      [0, 3, undefined],
      [9, 0, undefined],
      [10, 0, 'index_out_of_range'],
      [-1, 0, 'index_out_of_range'],
      [0.5, 0, 'index_out_of_range'],
      [0, 4, 'value_too_large'],
      [0, -1, 'value_too_large'],
      [0, 0.5, 'value_too_large'],
    ] as const) {
      expect(entryFault(2, 10, { index, status }), `${index} ${status}`).to.equal(fault);
    }
  });

  it('are written and read within the list, padding left alone', () => {
    const bytes = packEntries(2, 5, [{ index: 4, status: 3 }]);
    expect([readStatus(bytes, 2, 4), readStatus(bytes, 2, 5)]).to.deep.equal([3, 0]);
    expect(() => packEntries(2, 5, [{ index: 5, status: 1 }])).to.throw(RangeError, 'index_out_of_range');
    expect(() => readStatus(bytes, 2, 8)).to.throw(RangeError, 'index_out_of_range');
    expect(() => writeStatus(bytes, 2, 0, 4)).to.throw(RangeError, 'value_too_large');
    expect(() => writeStatus(bytes, 2, 8, 0)).to.throw(RangeError, 'index_out_of_range');
    expect(whyNot(() => statusAt(bytes, 2, 8))).to.equal('idx is outside the list');
    expect([0, 1, 2, 3, 15].map(verdictOf)).to.deep.equal([
      ...['valid', 'status_revoked', 'status_suspended', 'status_unknown', 'status_unknown'],
    ]);
  });

  it('come out of a compressed list that has its form', () => {
    expect(decompressList(LST, 2)).to.deep.equal(Buffer.from([1, 2]));
    expect(whyNot(() => decompressList(LST, 3))).to.equal('bits');
    for (const lst of [5, undefined, null, `${LST}=`, [LST]]) {
      expect(whyNot(() => decompressList(lst, 1))).to.equal('lst is not base64url');
    }
    expect(whyNot(() => decompressList('AAAA', 1))).to.equal('lst does not inflate');
    expect(whyNot(() => decompressList(compressList(Buffer.alloc(0)), 1))).to.equal('lst is empty');
  });
});

describe('The reference of a credential to its status', () => {
  it('is an index and an address, or not there', () => {
    expect(readStatusReference({})).to.equal(undefined);
    expect(readStatusReference({ status: { status_list: { idx: 0, uri: URI }, other: {} } })).to.deep.equal({
      idx: 0,
      uri: URI,
    });
    for (const status of [null, 'x', {}, { status_list: null }, { status_list: [] }]) {
      expect(whyNot(() => readStatusReference({ status }))).to.equal('no status_list');
    }
    const of = (idx: string | number, uri: string | number | string[]) =>
      whyNot(() => readStatusReference({ status: { status_list: { idx, uri } } }));
    for (const idx of ['0', -1, 0.5, 2 ** 53]) expect(of(idx, URI), `${idx}`).to.equal('idx');
    for (const uri of ['', '/status/1', 1, [URI]]) expect(of(0, uri), `${uri}`).to.equal('uri');
  });
});

describe('The token of a status list', () => {
  const built: StatusListToBuild = {
    uri: URI,
    bits: 2,
    lst: LST,
    issuedAt: new Date(NOW.getTime() + 999),
    ttlSeconds: 60,
  };
  const claims = { sub: URI, iat: IAT, status_list: { bits: 2, lst: LST } };
  const read = (changes: object) => readStatusListClaims({ ...claims, ...changes }, URI, NOW);

  it('says when it was made and for how long it counts', () => {
    expect(statusListClaims(built)).to.deep.equal({
      ...{ sub: URI, iat: IAT, exp: IAT + 60, ttl: 60, status_list: { bits: 2, lst: LST } },
    });
    const aggregationUri = 'https://issuer.example/status';
    expect(statusListClaims({ ...built, aggregationUri }).status_list).to.have.property(
      'aggregation_uri',
      aggregationUri,
    );
  });

  it('is read, with what it says of its end and without', () => {
    expect(read({})).to.deep.equal({ bits: 2, lst: LST, iat: IAT });
    expect(read({ exp: IAT + 1, ttl: 5, nbf: IAT })).to.deep.equal({
      bits: 2,
      lst: LST,
      iat: IAT,
      exp: IAT + 1,
      ttl: 5,
    });
    expect(read({ iat: IAT + 60, nbf: IAT + 60 }).iat, 'within the skew').to.equal(IAT + 60);
    expect(read({ exp: IAT - 59 }).exp, 'within the tolerance').to.equal(IAT - 59);
  });

  for (const [why, changes] of [
    ['sub', { sub: `${URI}/` }],
    ['iat', { iat: undefined }],
    ['iat', { iat: '1' }],
    ['iat', { iat: IAT + 61 }],
    ['exp', { exp: IAT - 60 }],
    ['exp', { exp: '9999999999' }],
    ['nbf', { nbf: IAT + 61 }],
    ['nbf', { nbf: null }],
    ['aud', { aud: URI }],
    ['ttl', { ttl: 0 }],
    ['ttl', { ttl: Number.NaN }],
    ['status_list', { status_list: null }],
    ['bits', { status_list: { bits: 3, lst: LST } }],
    ['lst', { status_list: { bits: 1, lst: 5 } }],
    ['lst', { status_list: { bits: 1 } }],
  ] as const) {
    it(`is refused for its ${why}: ${JSON.stringify(changes)}`, () => {
      expect(whyNot(() => read(changes))).to.equal(why);
    });
  }

  it('is an object, under a header that says what it is', () => {
    for (const payload of [null, 'x', [claims]]) {
      expect(whyNot(() => readStatusListClaims(payload, URI, NOW))).to.equal('payload');
    }
    const header = (changes: object) =>
      whyNot(() => checkStatusListHeader({ typ: 'statuslist+jwt', alg: 'ES256', ...changes }));
    expect([header({}), header({ typ: 'jwt' }), header({ alg: 'HS256' })]).to.deep.equal([
      'taken',
      'typ',
      'alg',
    ]);
  });

  const chain = [Buffer.from('one').toString('base64')];
  const sealed = (given: StatusListToBuild = built) => {
    const prepared = prepareStatusListCwt({ claims: statusListClaims(given), algorithm: 'ES256', chain });
    return prepared.seal(Buffer.alloc(64, 7));
  };
  const parts = () => (decodeCbor(sealed()) as Tagged).value as Cbor[];
  const bent = (index: number, value: Cbor) => encodeCbor(new Tagged(18, parts().with(index, value)));
  const withClaims = (change: (map: Map<number, Cbor>) => void) => {
    const map = new Map(decodeCbor(parts()[2] as Buffer) as ReadonlyMap<number, Cbor>);
    change(map);
    return bent(2, encodeCbor(map));
  };
  const withHeader = (change: (map: Map<number, Cbor>) => void) => {
    const map = new Map(decodeCbor(parts()[0] as Buffer) as ReadonlyMap<number, Cbor>);
    change(map);
    return bent(0, encodeCbor(map));
  };

  it('says the same in CBOR', () => {
    const opened = openStatusListCwt(sealed());
    expect(opened).to.deep.include({
      algorithm: 'ES256',
      chain,
      payload: { ...claims, exp: IAT + 60, ttl: 60 },
    });
    expect(readStatusListClaims(opened.payload, URI, NOW)).to.deep.equal(read({ exp: IAT + 60, ttl: 60 }));
    const limited = openStatusListCwt(withClaims((map) => map.set(3, 'x').set(5, 1)));
    expect(limited.payload).to.include({ aud: 'x', nbf: 1 });
    const listIn = (bytes: Buffer) => {
      const payload = decodeCbor(((decodeCbor(bytes) as Tagged).value as Cbor[])[2] as Buffer) as CborMap;
      return [...(payload.get(65533) as CborMap).keys()];
    };
    expect(listIn(sealed())).to.have.members(['bits', 'lst']);
    expect(listIn(sealed({ ...built, aggregationUri: URI }))).to.have.members([
      'bits',
      'lst',
      'aggregation_uri',
    ]);
  });

  it('is the same with the tag of a COSE_Sign1 and without', () => {
    const tagged = sealed();
    const untagged = encodeCbor((decodeCbor(tagged) as Tagged).value);
    expect(openStatusListCwt(untagged)).to.deep.equal(openStatusListCwt(tagged));
  });

  it('may carry its certificates in either header, or none', () => {
    const unprotected = withHeader((map) => map.delete(33));
    expect(openStatusListCwt(unprotected)).to.not.have.property('chain');
    const [bytes, , payload, signature] = (decodeCbor(unprotected) as Tagged).value as Cbor[];
    const moved = encodeCbor(
      new Tagged(18, [bytes, new Map([[33, Buffer.from('one')]]), payload, signature]),
    );
    expect(openStatusListCwt(moved).chain).to.deep.equal(chain);
  });

  const wrong: readonly (readonly [string, string, () => Buffer])[] = [
    ['the tag of a CWT alone', 'not a COSE_Sign1', () => encodeCbor(new Tagged(61, parts()))],
    ['the tag of a MAC', 'not a COSE_Sign1', () => encodeCbor(new Tagged(17, parts()))],
    ['another type', 'typ', () => withHeader((map) => map.set(16, 'application/cwt'))],
    ['no type', 'typ', () => withHeader((map) => map.delete(16))],
    ['another algorithm', 'status_invalid', () => withHeader((map) => map.set(1, 5))],
    ['a payload elsewhere', 'payload', () => bent(2, null)],
    ['a payload that is no map', 'payload', () => bent(2, encodeCbor([1]))],
    ['a subject that is no text', 'sub', () => withClaims((map) => map.set(2, Buffer.from('x')))],
    ['no list', 'status_list', () => withClaims((map) => map.delete(65533))],
    ['a list that is text', 'status_list', () => withClaims((map) => map.set(65533, 'x'))],
    [
      'a list in base64url',
      'status_list',
      () =>
        withClaims((map) =>
          map.set(
            65533,
            new Map<string, Cbor>([
              ['bits', 1],
              ['lst', LST],
            ]),
          ),
        ),
    ],
    [
      'a width that is no number',
      'bits',
      () =>
        withClaims((map) =>
          map.set(
            65533,
            new Map<string, Cbor>([
              ['bits', null],
              ['lst', Buffer.from('x')],
            ]),
          ),
        ),
    ],
  ];
  for (const [what, why, make] of wrong) {
    it(`is refused in CBOR with ${what}`, () =>
      expect(whyNot(() => openStatusListCwt(make()))).to.contain(why));
  }

  it('is typed alike in CBOR by all who make one', () => {
    expect((decodeCbor(parts()[0] as Buffer) as CborMap).get(16)).to.equal(STATUS_LIST_CWT_TYPE);
  });
});
