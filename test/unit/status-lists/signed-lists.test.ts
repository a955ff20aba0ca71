import { expect } from 'chai';
import { NodeCertificates } from '../../../adapters/crypto/certificates.ts';
import type { RemoteStatusList } from '../../../application/status-lists/remote-status-lists.ts';
import { AggregateStatusLists } from '../../../application/status-lists/status-lists.ts';
import { type StatusQuery, StatusVerifier } from '../../../application/status-lists/verify-status.ts';
import type { TenantConfiguration } from '../../../application/tenant-cache/tenant-configuration.ts';
import { decodeCbor } from '../../../domain/formats/cbor/decode.ts';
import { encodeCbor } from '../../../domain/formats/cbor/encode.ts';
import { type Cbor, type CborMap, Tagged } from '../../../domain/formats/cbor/values.ts';
import type { KeyChain, KeyUsage } from '../../../domain/keys/key-chain.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { Refusal } from '../../../domain/shared/refusal.ts';
import { findEntryProblem, isEntryBits, packEntries, readStatus, roundCapacity, writeStatus } from '../../../domain/status-lists/bits.ts';
import { decompressList } from '../../../domain/status-lists/codec.ts';
import { currentSigner, haveSameTrust, listSigners, signerOfList } from '../../../domain/status-lists/list-signer.ts';
import { parseStatusReference, statusAt, verdictOf } from '../../../domain/status-lists/reference.ts';
import {
  assertStatusListHeader,
  parseStatusListClaims,
  type StatusListToBuild,
  statusListClaims,
} from '../../../domain/status-lists/token.ts';
import { parseStatusListCwt, prepareStatusListCwt, STATUS_LIST_CWT_TYPE } from '../../../domain/status-lists/token-cwt.ts';
import { compressList } from '../../support/compress-list.ts';
import { decode } from '../../support/present.ts';
import { type CertificateOptions, type CertifiedKey, certify, DOCUMENT_SIGNER, WEB_SERVER } from '../../support/test-certificates.ts';
import { ACME, PUBLIC_URL, SetClock } from '../verification/kit.ts';
import { anOffer, outcomeOf, Wallet, WalletWorld } from '../wallet-kit.ts';

const URI = 'https://issuer.example/status/1';
const NOW = new Date('2027-01-15T08:00:00Z');
const IAT = NOW.getTime() / 1000;
const LST = compressList(Buffer.from([1, 2]));

/** Returns the reason of a rejection. All reasons concern the status. */
function rejectionOf(work: () => unknown): string {
  try {
    work();
    return 'accepted';
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    expect(error.reason).to.equal('status_invalid');
    return error.message.replace('status_invalid: ', '');
  }
}

describe('status list entries', () => {
  it('have a width and a position in the list', () => {
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
      expect(findEntryProblem(2, 10, { index, status }), `${index} ${status}`).to.equal(fault);
    }
  });

  it('are read and written within the list, without changes of the padding', () => {
    const bytes = packEntries(2, 5, [{ index: 4, status: 3 }]);
    expect([readStatus(bytes, 2, 4), readStatus(bytes, 2, 5)]).to.deep.equal([3, 0]);
    expect(() => packEntries(2, 5, [{ index: 5, status: 1 }])).to.throw(RangeError, 'index_out_of_range');
    expect(() => readStatus(bytes, 2, 8)).to.throw(RangeError, 'index_out_of_range');
    expect(() => writeStatus(bytes, 2, 0, 4)).to.throw(RangeError, 'value_too_large');
    expect(() => writeStatus(bytes, 2, 8, 0)).to.throw(RangeError, 'index_out_of_range');
    expect(rejectionOf(() => statusAt(bytes, 2, 8))).to.equal('idx is outside the list');
    expect([0, 1, 2, 3, 15].map(verdictOf)).to.deep.equal([
      ...['valid', 'status_revoked', 'status_suspended', 'status_unknown', 'status_unknown'],
    ]);
  });

  it('are decoded from a well-formed compressed list', () => {
    expect(decompressList(LST, 2)).to.deep.equal(Buffer.from([1, 2]));
    expect(rejectionOf(() => decompressList(LST, 3))).to.equal('bits');
    for (const lst of [5, undefined, null, `${LST}=`, [LST]]) {
      expect(rejectionOf(() => decompressList(lst, 1))).to.equal('lst is not base64url');
    }
    expect(rejectionOf(() => decompressList('AAAA', 1))).to.equal('lst does not inflate');
    expect(rejectionOf(() => decompressList(compressList(Buffer.alloc(0)), 1))).to.equal('lst is empty');
  });
});

describe('status reference of a credential', () => {
  it('consists of an index and an address, or is absent', () => {
    expect(parseStatusReference({})).to.equal(undefined);
    expect(parseStatusReference({ status: { status_list: { idx: 0, uri: URI }, other: {} } })).to.deep.equal({ idx: 0, uri: URI });
    for (const status of [null, 'x', {}, { status_list: null }, { status_list: [] }]) {
      expect(rejectionOf(() => parseStatusReference({ status }))).to.equal('no status_list');
    }
    const parseReference = (idx: string | number, uri: string | number | string[]) =>
      rejectionOf(() => parseStatusReference({ status: { status_list: { idx, uri } } }));
    for (const idx of ['0', -1, 0.5, 2 ** 53]) expect(parseReference(idx, URI), `${idx}`).to.equal('idx');
    for (const uri of ['', '/status/1', 1, [URI]]) expect(parseReference(0, uri), `${uri}`).to.equal('uri');
  });
});

describe('status list token', () => {
  const built: StatusListToBuild = { uri: URI, bits: 2, lst: LST, issuedAt: new Date(NOW.getTime() + 999), ttlSeconds: 60 };
  const claims = { sub: URI, iat: IAT, status_list: { bits: 2, lst: LST } };
  const read = (changes: object) => parseStatusListClaims({ ...claims, ...changes }, URI, NOW);

  it('contains its time of issuance and its lifetime', () => {
    expect(statusListClaims(built)).to.deep.equal({
      ...{ sub: URI, iat: IAT, exp: IAT + 60, ttl: 60, status_list: { bits: 2, lst: LST } },
    });
    const aggregationUri = 'https://issuer.example/status';
    expect(statusListClaims({ ...built, aggregationUri }).status_list).to.have.property('aggregation_uri', aggregationUri);
  });

  it('is parsed, with and without an expiry', () => {
    expect(read({})).to.deep.equal({ bits: 2, lst: LST, iat: IAT });
    expect(read({ exp: IAT + 1, ttl: 5, nbf: IAT })).to.deep.equal({ bits: 2, lst: LST, iat: IAT, exp: IAT + 1, ttl: 5 });
    expect(read({ iat: IAT + 60, nbf: IAT + 60 }).iat, 'within the skew').to.equal(IAT + 60);
    expect(read({ exp: IAT - 59 }).exp, 'within the tolerance').to.equal(IAT - 59);
  });

  for (const [reason, changes] of [
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
    it(`is rejected for its ${reason}: ${JSON.stringify(changes)}`, () => {
      expect(rejectionOf(() => read(changes))).to.equal(reason);
    });
  }

  it('is an object, with a header of its type', () => {
    for (const payload of [null, 'x', [claims]]) {
      expect(rejectionOf(() => parseStatusListClaims(payload, URI, NOW))).to.equal('payload');
    }
    const header = (changes: object) => rejectionOf(() => assertStatusListHeader({ typ: 'statuslist+jwt', alg: 'ES256', ...changes }));
    expect([header({}), header({ typ: 'jwt' }), header({ alg: 'HS256' })]).to.deep.equal(['accepted', 'typ', 'alg']);
  });

  const chain = [Buffer.from('one').toString('base64')];
  const sealedCwt = (list: StatusListToBuild = built) => {
    const prepared = prepareStatusListCwt({ claims: statusListClaims(list), algorithm: 'ES256', chain });
    return prepared.seal(Buffer.alloc(64, 7));
  };
  const parts = () => (decodeCbor(sealedCwt()) as Tagged).value as Cbor[];
  const withPart = (index: number, value: Cbor) => encodeCbor(new Tagged(18, parts().with(index, value)));
  const withClaims = (change: (map: Map<number, Cbor>) => void) => {
    const map = new Map(decodeCbor(parts()[2] as Buffer) as ReadonlyMap<number, Cbor>);
    change(map);
    return withPart(2, encodeCbor(map));
  };
  const withHeader = (change: (map: Map<number, Cbor>) => void) => {
    const map = new Map(decodeCbor(parts()[0] as Buffer) as ReadonlyMap<number, Cbor>);
    change(map);
    return withPart(0, encodeCbor(map));
  };

  it('has the same content in CBOR', () => {
    const parsed = parseStatusListCwt(sealedCwt());
    expect(parsed).to.deep.include({ algorithm: 'ES256', chain, payload: { ...claims, exp: IAT + 60, ttl: 60 } });
    expect(parseStatusListClaims(parsed.payload, URI, NOW)).to.deep.equal(read({ exp: IAT + 60, ttl: 60 }));
    const withTimes = parseStatusListCwt(withClaims((map) => map.set(3, 'x').set(5, 1)));
    expect(withTimes.payload).to.include({ aud: 'x', nbf: 1 });
    const listOf = (bytes: Buffer) => {
      const payload = decodeCbor(((decodeCbor(bytes) as Tagged).value as Cbor[])[2] as Buffer) as CborMap;
      return [...(payload.get(65533) as CborMap).keys()];
    };
    expect(listOf(sealedCwt())).to.have.members(['bits', 'lst']);
    expect(listOf(sealedCwt({ ...built, aggregationUri: URI }))).to.have.members(['bits', 'lst', 'aggregation_uri']);
  });

  it('is the same with and without the tag of a COSE_Sign1', () => {
    const tagged = sealedCwt();
    const untagged = encodeCbor((decodeCbor(tagged) as Tagged).value);
    expect(parseStatusListCwt(untagged)).to.deep.equal(parseStatusListCwt(tagged));
  });

  it('may contain its certificates in either header, or none', () => {
    const unprotected = withHeader((map) => map.delete(33));
    expect(parseStatusListCwt(unprotected)).to.not.have.property('chain');
    const [bytes, , payload, signature] = (decodeCbor(unprotected) as Tagged).value as Cbor[];
    const withMovedChain = encodeCbor(new Tagged(18, [bytes, new Map([[33, Buffer.from('one')]]), payload, signature]));
    expect(parseStatusListCwt(withMovedChain).chain).to.deep.equal(chain);
  });

  const invalid: readonly (readonly [string, string, () => Buffer])[] = [
    ['the tag of a CWT alone', 'not a COSE_Sign1', () => encodeCbor(new Tagged(61, parts()))],
    ['the tag of a MAC', 'not a COSE_Sign1', () => encodeCbor(new Tagged(17, parts()))],
    ['another type', 'typ', () => withHeader((map) => map.set(16, 'application/cwt'))],
    ['no type', 'typ', () => withHeader((map) => map.delete(16))],
    ['another algorithm', 'status_invalid', () => withHeader((map) => map.set(1, 5))],
    ['a detached payload', 'payload', () => withPart(2, null)],
    ['a payload that is not a map', 'payload', () => withPart(2, encodeCbor([1]))],
    ['a subject that is not a string', 'sub', () => withClaims((map) => map.set(2, Buffer.from('x')))],
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
      'a width that is not a number',
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
  for (const [description, reason, buildToken] of invalid) {
    it(`is rejected in CBOR with ${description}`, () => expect(rejectionOf(() => parseStatusListCwt(buildToken()))).to.contain(reason));
  }

  it('has the same type in CBOR in every encoding', () => {
    expect((decodeCbor(parts()[0] as Buffer) as CborMap).get(16)).to.equal(STATUS_LIST_CWT_TYPE);
  });
});

const LATER = new Date('2028-01-01T00:00:00Z');
const PAST = new Date('2027-01-01T00:00:00Z');

let count = 0;
/** @param root the name of its authority, or undefined for uploaded certificates. */
function chain(id: string, usages: readonly KeyUsage[], root?: string, notAfter = LATER): KeyChain {
  const createdAt = new Date(count++);
  const key = {} as never;
  return {
    ...{ id, tenantId: 'acme', usages, kmsProvider: 'local', createdAt, updatedAt: createdAt },
    ...(root !== undefined && { root: { key, certificate: root, notAfter } }),
    active: { key, certificates: [id], notAfter },
    ...{ rotationEnabled: false, rotationIntervalDays: 90, certValidityDays: 365 },
  };
}

const signers = (chains: readonly KeyChain[], id?: string) => {
  const { preferred, accepted } = listSigners(chains, id, NOW);
  return { preferred, accepted: [...accepted].map(String).sort() };
};

describe('status list signer of a credential', () => {
  const issuer = chain('issuer', ['signing'], 'A');

  it('is the default of the tenant if a key chain of the same authority can sign lists', () => {
    const lists = chain('lists', ['statusList'], 'A');
    expect(signers([issuer, lists])).to.deep.equal({ preferred: null, accepted: ['issuer', 'lists', 'null'] });
  });

  it('is another key chain under the authority of the issuer when the default is under another authority', () => {
    const otherChain = chain('other', ['statusList'], 'B');
    const lateChain = chain('late', ['statusList'], 'A');
    expect(signers([issuer, otherChain, lateChain])).to.deep.equal({ preferred: 'late', accepted: ['issuer', 'late'] });
  });

  it('is the issuer itself if no other key chain has the same authority', () => {
    const otherChain = chain('other', ['statusList'], 'B');
    expect(signers([issuer, otherChain])).to.deep.equal({ preferred: 'issuer', accepted: ['issuer'] });
    expect(signers([issuer])).to.deep.equal({ preferred: 'issuer', accepted: ['issuer'] });
  });

  it('excludes key chains with other usages or an expired certificate', () => {
    const access = chain('access', ['access', 'trustList'], 'A');
    const expired = chain('ended', ['statusList'], 'A', PAST);
    expect(signers([issuer, access, expired])).to.deep.equal({ preferred: 'issuer', accepted: ['issuer'] });
    const second = chain('second', ['signing'], 'A');
    expect(signers([issuer, second]).accepted, 'a chain with the authority of the issuer').to.deep.equal(['issuer', 'second']);
    expect(signers([issuer, second], 'second').preferred).to.equal('second');
  });

  it('is the issuer when its certificates come from an external CA, even if it is the default', () => {
    const uploaded = chain('outside', ['signing', 'statusList']);
    expect(signers([uploaded])).to.deep.equal({ preferred: 'outside', accepted: ['null', 'outside'] });
    const foreign = chain('foreign', ['statusList']);
    const single = chain('alone', ['signing']);
    expect(signers([single, foreign])).to.deep.equal({ preferred: 'alone', accepted: ['alone'] });
  });

  it('is the key chain of the list, with its usage', () => {
    const bothUsages = chain('both', ['signing', 'statusList'], 'A');
    const parseReference = (keyChainId: string | null, chains = [issuer, bothUsages]) => currentSigner(chains, { keyChainId }, NOW)?.id;
    expect([parseReference('issuer'), parseReference('both'), parseReference(null), parseReference('gone')]).to.deep.equal([
      'issuer',
      'both',
      'both',
      undefined,
    ]);
    expect(parseReference(null, [issuer]), 'none by default').to.equal(undefined);
    expect(parseReference('lists', [issuer, chain('lists', ['statusList'], 'A')]), 'for lists alone').to.equal('lists');
    expect(() => signerOfList([issuer], { keyChainId: 'gone' }, NOW)).to.throw('There is no key chain "gone"');
    expect(parseReference('access', [chain('access', ['access'], 'A')]), 'for another purpose').to.equal(undefined);
  });

  it('is trusted like another one by itself, or by its authority', () => {
    const [a, b, c] = [chain('a', ['signing'], 'A'), chain('b', ['signing'], 'A'), chain('c', ['signing'], 'C')];
    const [x, y] = [chain('x', ['signing']), chain('y', ['signing'])];
    const pairs = [
      [a, b],
      [a, c],
      [a, x],
      [x, a],
      [x, y],
      [x, x],
    ] as const;
    expect(pairs.map(([left, right]) => haveSameTrust(left, right))).to.deep.equal([...[true, false, false, false, false, true]]);
  });
});

describe('signer of a status list', () => {
  const URI = 'https://issuer.example/lists/1';

  const clock = new SetClock();
  const certificates = new NodeCertificates();
  let root: CertifiedKey;
  let otherRoot: CertifiedKey;
  let middle: CertifiedKey;
  let formerChain: CertifiedKey;

  before(async () => {
    root = await certify({ name: 'Root', ca: true });
    otherRoot = await certify({ name: 'Other root', ca: true });
    middle = await certify({ name: 'Middle', by: root, ca: true });
    formerChain = await certify({ name: 'DS 1, O=Issuer, C=DE', by: root, ...DOCUMENT_SIGNER });
  });

  const check = async (chain: readonly CertifiedKey[], changes: Partial<StatusQuery> = {}, credential = formerChain): Promise<string> => {
    const signer = chain.map(({ certificate }) => certificate);
    const list = { uri: URI, bits: 1, bytes: Buffer.alloc(2), signer, fetchedAt: clock.now() };
    const checker = new StatusVerifier({
      remoteStatusLists: { get: async () => list as unknown as RemoteStatusList } as never,
      localStatusLists: {} as never,
      certificates,
      clock,
      settings: { publicUrl: 'https://vidimus.example' } as never,
      tenantConfigurations: {} as never,
    });
    const anchors = [root, otherRoot].map(({ certificate }) => ({ certificate }));
    const purpose = changes.purpose ?? 'mdoc';
    const issuer = certificates.verifyChain([credential.certificate], anchors, clock.now(), { purpose });
    if (!issuer.trusted) throw new Error(issuer.detail);
    try {
      await checker.verify({
        tenant: { tenantId: 'acme' } as TenantConfiguration,
        reference: { idx: 1, uri: URI },
        chain: [credential.certificate],
        issuer,
        anchors,
        purpose,
        ...changes,
      });
      return 'accepted';
    } catch (error) {
      if (error instanceof Refusal) return error.message;
      throw error;
    }
  };
  const signer = (changes: Partial<CertificateOptions> = {}) =>
    certify({ name: 'DS 2, O=Issuer, C=DE', by: root, ...DOCUMENT_SIGNER, ...changes });

  for (const purpose of ['mdoc', 'SD-JWT VC'] as const) {
    describe(`of a credential in the format ${purpose}`, () => {
      it('may be the next document signer of the issuer', async () => {
        expect(await check([await signer()], { purpose })).to.equal('accepted');
      });

      it('may be the next document signer when the trust list names a revocation service under the same anchor', async () => {
        const revocation = [{ certificate: root.certificate }];
        expect(await check([await signer()], { purpose, revocation })).to.equal('accepted');
        const otherAnchors = [{ certificate: otherRoot.certificate }];
        expect(await check([await signer()], { purpose, revocation: otherAnchors })).to.match(/^status_invalid/);
      });

      const rejectedSigners: Record<string, () => Promise<readonly CertifiedKey[]>> = {
        'of another organization': async () => [await signer({ name: 'DS 2, O=Other, C=DE' })],
        'of another country': async () => [await signer({ name: 'DS 2, O=Issuer, C=FR' })],
        'of an issuer without organization': async () => [await signer({ name: 'DS 2' })],
        'certified by a CA below the anchor': async () => [await signer({ by: middle }), middle],
        'under another anchor': async () => [await signer({ by: otherRoot })],
        'with the extended key usage of a web server': async () => [await signer({ purposes: [WEB_SERVER] })],
        'with an expired certificate': async () => [await signer({ until: '2025-06-01T00:00:00Z' })],
      };
      for (const [description, chain] of Object.entries(rejectedSigners)) {
        it(`is rejected if it is ${description}`, async () => {
          expect(await check(await chain(), { purpose })).to.match(/^status_invalid/);
        });
      }

      it('must have a host name of the previous one, if that has any', async () => {
        const dns = ['issuer.example'];
        const credential = await certify({ name: 'DS 1', by: root, dns, ...DOCUMENT_SIGNER });
        const nextSigner = (names: readonly string[]) => signer({ name: 'DS 2', dns: names });
        expect(await check([await nextSigner(dns)], { purpose }, credential)).to.equal('accepted');
        const otherName = await check([await nextSigner(['other.example'])], { purpose }, credential);
        expect(otherName).to.match(/^status_invalid/);
      });
    });
  }

  it('has its revocation checked if it is not the signer of the credential', async () => {
    const checkedCertificates: string[] = [];
    const nextSigner = await signer();
    const checkSigner = async ([certificate = '']: readonly string[]) => checkedCertificates.push(certificate);
    await check([nextSigner], { checkSigner });
    expect(checkedCertificates).to.deep.equal([nextSigner.certificate]);
  });
});

describe('AggregateStatusLists', () => {
  let world: WalletWorld;

  before(async () => {
    world = await WalletWorld.open();
    await world.putCredential({ id: 'listed', statusManagement: true });
  });

  const aggregate = (tenantId = ACME) => new AggregateStatusLists(world).execute(tenantId);

  it('names the public addresses of the lists', async () => {
    const wallet = new Wallet(world);
    const token = await wallet.token(await anOffer(world, { credentialConfigurationIds: ['listed'] }));
    const { credentials } = await wallet.issue(token, { credential_configuration_id: 'listed' });
    const { uri } = decode(credentials[0]?.credential ?? '').payload['status'].status_list;
    expect(await aggregate()).to.include(uri);
    for (const address of await aggregate()) expect(address).to.match(new RegExp(`^${PUBLIC_URL}/acme/status-list/`));
  });

  it('omits lists that are not aggregated', async () => {
    const [list] = await world.store.forTenant(ACME, (repositories) => repositories.statusLists.list());
    if (list === undefined) throw new Error('no list');
    const emptyList = { ...list, id: 'hidden', usedEntries: 0, enableAggregation: false };
    await world.store.forTenant(ACME, (repositories) => repositories.statusLists.add(emptyList), { by: 'system' });
    expect(await aggregate()).not.to.include(`${PUBLIC_URL}/acme/status-list/hidden`);
  });

  it('serves suspended tenants, since their credentials remain valid', async () => {
    await world.changeTenant({ status: 'suspended' });
    expect((await aggregate()).length).to.be.greaterThan(0);
    await world.changeTenant({ status: 'active' });
  });

  it('fails for an unknown tenant, or if aggregation is disabled', async () => {
    expect(await outcomeOf(aggregate('unknown' as TenantId))).to.equal('not_found');
    const empty = 'empty' as TenantId;
    await world.addTenant(empty);
    expect(await aggregate(empty)).to.deep.equal([]);
    await world.changeTenant({ statusListConfig: { enableAggregation: false } }, empty);
    expect(await outcomeOf(aggregate(empty))).to.equal('not_found');
  });
});
