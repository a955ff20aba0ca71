import { expect } from 'chai';
import sinon from 'sinon';
import { NodeRandom } from '../../../adapters/system/random.ts';
import { parseDisclosureFrame } from '../../../domain/formats/sd-jwt/disclosure-frame.ts';
import { processDisclosures } from '../../../domain/formats/sd-jwt/disclosures.ts';
import { prepareSdJwt } from '../../../domain/formats/sd-jwt/issue.ts';
import { parseSdJwt } from '../../../domain/formats/sd-jwt/parse.ts';
import { padFrame } from '../../../domain/issuance/frame-padding.ts';
import { copiesSharingTimes, linkingIndexPattern, repeatsSalt } from '../../../domain/issuance/linkable-copies.ts';
import { type CredentialReusePolicy, maxBatchSize } from '../../../domain/issuance/reuse-policy.ts';
import type { Json, JsonObject } from '../../../domain/shared/json.ts';
import type { PublicJwk } from '../../../domain/shared/jwk.ts';
import { readIssuerSigned } from '../../support/mdoc-maker.ts';
import { decode } from '../../support/present.ts';
import { newKey } from '../../support/raw-wallet.ts';
import { anOffer, outcomeOf, Wallet, WalletWorld } from '../wallet-kit.ts';
import { aConfiguration, aFactory, anMdoc, aTenantView, DISPLAY, findProblemPaths, MDL, MDL_NAMESPACE } from './kit.ts';

const policy = (...options: object[]) => ({ id: 'arf_annex_ii', options });

describe('batch of a configuration with a reuse policy', () => {
  const ONCE = { details: ['once_only'], batch_size: 6, reissue_trigger_unused: 1 };
  const LIMITED = { details: ['limited_time'], reissue_trigger_lifetime_left: 60 };

  let world: WalletWorld;
  let wallet: Wallet;

  before(async () => {
    world = await WalletWorld.open();
    await world.putIssuance({ batchSize: 3 });
    await world.putCredential({ id: 'once', statusManagement: true, credentialReusePolicy: policy(ONCE) });
    await world.putCredential({ id: 'limited', lifeTime: 86_400, credentialReusePolicy: policy(LIMITED) });
    wallet = new Wallet(world);
  });
  afterEach(() => sinon.restore());

  const buildRequest = async (id: string, count: number) => {
    const token = await wallet.token(await anOffer(world, { credentialConfigurationIds: [id] }));
    const nonce = await wallet.nonce();
    const jwt = Array.from({ length: count }, () => wallet.keyProof(nonce));
    return wallet.issue(token, { credential_configuration_id: id, proofs: { jwt } });
  };
  const indices = (issued: Awaited<ReturnType<typeof buildRequest>>) =>
    issued.credentials.map(({ credential }) => {
      const { status } = decode(credential).payload as { status: { status_list: { idx: number } } };
      return status.status_list.idx;
    });

  it('has the number of copies of the policy, regardless of the issuer configuration', async () => {
    expect((await buildRequest('once', 6)).credentials).to.have.length(6);
    expect(await outcomeOf(buildRequest('once', 7))).to.equal('invalid_credential_request');
    expect((await buildRequest('limited', 1)).credentials).to.have.length(1);
    expect(await outcomeOf(buildRequest('limited', 2))).to.equal('invalid_credential_request');
    expect((await buildRequest('card', 3)).credentials).to.have.length(3);
    expect(await outcomeOf(buildRequest('card', 4))).to.equal('invalid_credential_request');
  });

  it('allocates other entries if random ones are in order, and releases those', async () => {
    const allocate = sinon.stub(world.statusAllocator, 'allocate').callThrough();
    const giveBack = sinon.spy(world.statusAllocator, 'release');
    allocate.onFirstCall().callsFake(async (...args) => {
      const entries = await allocate.wrappedMethod.apply(world.statusAllocator, args);
      return { ...entries, indices: entries.indices.toSorted((left, right) => left - right) };
    });
    const drawnIndices = indices(await buildRequest('once', 6));
    expect(drawnIndices).to.not.deep.equal(drawnIndices.toSorted((left, right) => left - right));
    // One of 360 further draws is in ascending order, too, and is repeated.
    expect(allocate.callCount).to.be.at.least(2);
    expect(giveBack.callCount).to.equal(allocate.callCount - 1);
  });

  it('is not issued from adjacent entries', async () => {
    const allocate = sinon
      .stub(world.statusAllocator, 'allocate')
      .callsFake(async (_configured, _configuration, count) => ({
        ...{ listId: 'list', uri: 'https://list.example', capacity: 100_000, firstCounter: 0 },
        indices: Array.from({ length: count }, (_, index) => (index * 7) % 50),
      }));
    const giveBack = sinon.stub(world.statusAllocator, 'release');
    expect(await outcomeOf(buildRequest('once', 6))).to.equal('credential_request_denied');
    expect(giveBack.callCount).to.equal(allocate.callCount).and.be.above(2);
  });
});

const HOUR = 1_780_000_000 - (1_780_000_000 % 3600);
const copy = (...times: number[]) => ({ times, salts: [] });
const salted = (...salts: string[]) => ({ times: [], salts });

describe('copies of a batch', () => {
  it('share the expiry in full hours and the limit of the certificate, and no finer time', () => {
    expect(copiesSharingTimes([copy(HOUR, HOUR + 3600), copy(HOUR, HOUR + 3600)], new Set())).to.deep.equal([]);
    expect(copiesSharingTimes([copy(HOUR, HOUR + 7), copy(HOUR, HOUR + 8)], new Set())).to.deep.equal([]);
    expect(copiesSharingTimes([copy(HOUR + 7), copy(HOUR + 8), copy(HOUR + 7)], new Set())).to.deep.equal([2]);
    expect(copiesSharingTimes([copy(HOUR + 7), copy(HOUR + 7)], new Set([HOUR + 7]))).to.deep.equal([]);
    // An mdoc contains the time of its signature and the start of its validity.
    expect(copiesSharingTimes([copy(HOUR + 7, HOUR + 7), copy(HOUR + 8)], new Set())).to.deep.equal([]);
    expect(copiesSharingTimes([copy(HOUR + 7), copy(HOUR, HOUR + 7)], new Set())).to.deep.equal([1]);
  });

  it('have separate salts', () => {
    expect(repeatsSalt([salted('a', 'b'), salted('c')])).to.equal(false);
    expect(repeatsSalt([salted('a', 'b'), salted('b')])).to.equal(true);
    expect(repeatsSalt([salted('a', 'a'), salted()])).to.equal(true);
  });

  it('have entries anywhere in the list, in no order', () => {
    const unsorted = [[5], [9000, 4], [4, 9000, 17, 5200, 80, 6100], [1, 2000, 4000, 6000, 8000]];
    for (const indices of unsorted) expect(linkingIndexPattern(indices, 10_000), String(indices)).to.equal(undefined);
    expect(linkingIndexPattern([7, 7], 10_000)).to.equal('the same index');
    expect(linkingIndexPattern([100, 101], 10_000)).to.equal('the page of the list');
    expect(linkingIndexPattern([100, 110], 10_000)).to.equal(undefined);
    const rising = [1, 2000, 3000, 4000, 5000, 6000];
    expect(linkingIndexPattern(rising, 10_000)).to.equal('the order of indices');
    expect(linkingIndexPattern(rising.toReversed(), 10_000)).to.equal('the order of indices');
    // A short list has no pages, and a few copies are often in order by chance.
    expect(linkingIndexPattern([1, 2, 3], 100)).to.equal(undefined);
  });
});

describe('linkable batch', () => {
  afterEach(() => sinon.restore());

  const claims = { given_name: 'Ada' };
  const keys = (count: number) => Array.from({ length: count }, () => ({ holderKey: newKey().jwk as PublicJwk }));
  const resultOf = async (work: Promise<readonly string[]>) =>
    work.then(
      ({ length }) => length,
      (error) => error.code,
    );

  const kinds = [
    ['an SD-JWT VC', aConfiguration({ disclosureFrame: { _sd: ['given_name'] } }), claims],
    ['an mdoc', anMdoc(), { [MDL_NAMESPACE]: { given_name: 'Ada' } }],
  ] as const;
  for (const [description, configuration, inputClaims] of kinds) {
    it(`is not issued with linkable salts: ${description}`, async () => {
      const { factory, chain } = await aFactory();
      const make = () => resultOf(factory.create(aTenantView(chain), configuration, inputClaims, keys(2)));
      expect(await make()).to.equal(2);
      sinon.stub(NodeRandom.prototype, 'bytes').callsFake((length) => Buffer.alloc(length, 7));
      expect(await make()).to.equal('credential_request_denied');
      // A single copy cannot be linked.
      expect(await resultOf(factory.create(aTenantView(chain), configuration, inputClaims, keys(1)))).to.equal(1);
    });
  }

  it('is drawn again with expiry times in order, and not issued if that does not help', async () => {
    const { factory, chain } = await aFactory();
    const configuration = aConfiguration({ lifeTime: 1210 });
    const expiryTimes = async (count: number) =>
      (await factory.create(aTenantView(chain), configuration, claims, keys(count))).map(
        (text) => JSON.parse(Buffer.from(text.split('.')[1] ?? '', 'base64url').toString()).exp as number,
      );
    for (let round = 0; round < 5; round++) expect(new Set(await expiryTimes(60)).size).to.equal(60);
    sinon.stub(NodeRandom.prototype, 'bytes').callsFake((length) => Buffer.alloc(length, 7));
    // Two of four copies are drawn from the full range, with the same result.
    expect(await resultOf(factory.create(aTenantView(chain), configuration, claims, keys(4)))).to.equal('credential_request_denied');
  });

  it('has expiry times more than two minutes apart from a lifetime of one hour on, in both formats', async () => {
    const { factory, chain } = await aFactory();
    const view = aTenantView(chain);
    const expiryOf = (text: string) => JSON.parse(Buffer.from(text.split('.')[1] ?? '', 'base64url').toString()).exp as number;
    const spread = (times: readonly number[]) => Math.max(...times) - Math.min(...times);
    for (const lifeTime of [3600, 7199]) {
      for (const count of [2, 3, 10]) {
        for (let round = 0; round < 20; round++) {
          const credentials = await factory.create(view, aConfiguration({ lifeTime }), claims, keys(count));
          expect(spread(credentials.map(expiryOf)), `${count} copies of ${lifeTime} seconds`).to.be.above(120);
        }
      }
    }
    const mdoc = anMdoc(undefined, { lifeTime: 3600 });
    const inputClaims = { [MDL_NAMESPACE]: { given_name: 'Ada' } };
    for (let round = 0; round < 20; round++) {
      const credentials = await factory.create(view, mdoc, inputClaims, keys(2));
      const expiryTimes = credentials.map((text) => {
        return readIssuerSigned(text, MDL).mso.validity.validUntil.getTime() / 1000;
      });
      expect(spread(expiryTimes)).to.be.above(120);
    }
  });

  it('with a lifetime of minutes is issued if no policy forbids it, with a warning', async () => {
    const { factory, chain } = await aFactory();
    const minute = aConfiguration({ lifeTime: 60 });
    expect(await resultOf(factory.create(aTenantView(chain), minute, claims, keys(20)))).to.equal(20);
    const options = [{ details: ['once_only'], batch_size: 20, reissue_trigger_unused: 1 }];
    const credentialReusePolicy = { id: 'arf_annex_ii', options } as const;
    const policed = { ...aConfiguration({ credentialReusePolicy, lifeTime: 86_400 }) } as never;
    // The status of the wallet expires too soon for so many copies.
    expect(await resultOf(factory.create(aTenantView(chain), policed, claims, keys(20), 60))).to.equal('credential_request_denied');
    expect(await resultOf(factory.create(aTenantView(chain), policed, claims, keys(20)))).to.equal(20);
  });
});

const ROTATING = { details: ['rotating-batch'], batch_size: 5, reissue_trigger_lifetime_left: 3600 };
const PER_PARTY = { details: ['per-relying-party'], ...{ batch_size: 20, reissue_trigger_unused: 0, reissue_trigger_lifetime_left: 3600 } };
const body = (options: readonly object[], changes: object = {}) => ({
  config: { format: 'dc+sd-jwt', display: DISPLAY },
  vct: 'urn:card:1',
  lifeTime: 86_400,
  credentialReusePolicy: { id: 'arf_annex_ii', options },
  ...changes,
});
const without = (option: object, name: string) => ({ ...option, [name]: undefined });
const OPTION = 'credentialReusePolicy.options.0';

describe('reuse policy', () => {
  const ONCE = { details: ['once_only'], batch_size: 10, reissue_trigger_unused: 2 };
  const LIMITED = { details: ['limited_time'], reissue_trigger_lifetime_left: 3600 };

  const valid: [string, object][] = [
    ['copies that are presented once', body([ONCE])],
    ['short-lived copies', body([LIMITED])],
    ['a preferred method in a separate option', body([PER_PARTY, ROTATING, ONCE])],
    ['methods that share an option', body([{ ...PER_PARTY, details: ['per-relying-party', 'once_only'] }])],
    ['rotating batches, or short-lived copies', body([ROTATING, LIMITED])],
    ['copies without an expiry, each for one presentation', body([ONCE], { lifeTime: null })],
    ['a credential without key binding', body([LIMITED], { keyBinding: false })],
    ['an mdoc, which expires anyway', body([LIMITED], { config: { format: 'mso_mdoc', docType: MDL }, vct: null, lifeTime: null })],
    ['no policy', body([], { credentialReusePolicy: null })],
  ];
  for (const [description, document] of valid) {
    it(`may be ${description}`, () => {
      expect(findProblemPaths(document)).to.deep.equal([]);
    });
  }

  const invalid: [string, object, string][] = [
    ['both once and for a limited time', body([ONCE, LIMITED]), 'credentialReusePolicy.options'],
    ['both in one option', body([{ ...ONCE, ...LIMITED, details: ['once_only', 'limited_time'] }]), 'credentialReusePolicy.options'],
    ['neither once nor for a limited time', body([ROTATING]), 'credentialReusePolicy.options'],
    ['a method twice', body([ONCE, ONCE]), 'credentialReusePolicy.options'],
    ['a method twice in one option', body([{ ...ONCE, details: ['once_only', 'once_only'] }]), 'credentialReusePolicy.options'],
    ['no option', body([]), 'credentialReusePolicy.options'],
    ['another policy', body([], { credentialReusePolicy: { id: 'other', options: [ONCE] } }), 'credentialReusePolicy.id'],
    ['an unknown method', body([{ ...ONCE, details: ['twice'] }]), `${OPTION}.details.0`],
    ['an old spelling', body([{ ...LIMITED, details: ['limited-time'] }]), `${OPTION}.details.0`],
    ['a batch of one', body([{ ...ONCE, batch_size: 1, reissue_trigger_unused: 0 }]), `${OPTION}.batch_size`],
    ['a batch without a size', body([without(ONCE, 'batch_size')]), `${OPTION}.batch_size`],
    ['a batch that is never used up', body([without(ONCE, 'reissue_trigger_unused')]), `${OPTION}.reissue_trigger_unused`],
    ['a batch that is used up initially', body([{ ...ONCE, reissue_trigger_unused: 10 }]), `${OPTION}.reissue_trigger_unused`],
    [
      'a limited time without a limit',
      body([without(LIMITED, 'reissue_trigger_lifetime_left')]),
      `${OPTION}.reissue_trigger_lifetime_left`,
    ],
    ['a limited time of a batch', body([{ ...LIMITED, batch_size: 3 }]), `${OPTION}.batch_size`],
    [
      'a credential that is due for renewal when it is issued',
      body([LIMITED], { lifeTime: 3600 }),
      `${OPTION}.reissue_trigger_lifetime_left`,
    ],
    ['a lifetime threshold without an expiry', body([LIMITED], { lifeTime: null }), `${OPTION}.reissue_trigger_lifetime_left`],
    ['copies without distinct keys', body([ONCE], { keyBinding: false }), `${OPTION}.batch_size`],
    ['copies that expire at nearly the same time', body([ONCE], { lifeTime: 1209 }), `${OPTION}.batch_size`],
    ['another property', body([{ ...ONCE, more: 1 }]), OPTION],
  ];
  for (const [description, document, path] of invalid) {
    it(`cannot be ${description}`, () => {
      expect(findProblemPaths(document)).to.deep.equal([path]);
    });
  }

  it('limits the number of copies of a response', () => {
    const copies = (options: readonly object[], batchSize: number) =>
      maxBatchSize({ credentialReusePolicy: { id: 'arf_annex_ii', options } as CredentialReusePolicy }, batchSize);
    expect(copies([ONCE], 1)).to.equal(10);
    expect(copies([ONCE, PER_PARTY], 50)).to.equal(20);
    expect(copies([LIMITED], 50)).to.equal(1);
    for (const unset of [null, undefined])
      expect([0, 1, 7].map((size) => maxBatchSize({ credentialReusePolicy: unset }, size))).to.deep.equal([1, 1, 7]);
    expect(maxBatchSize(aConfiguration(), 3)).to.equal(3);
  });
});

const SCHEMA: JsonObject = {
  type: 'object',
  properties: {
    name: { type: 'string' },
    title: true,
    address: { $ref: '#/$defs/address' },
    languages: { type: 'array', items: { type: 'string' }, maxItems: 2 },
    never: false,
  },
  $defs: { address: { type: 'object', properties: { street: {}, flat: {} } } },
};
const FRAME = { _sd: ['name', 'title', 'address', 'unknown'], address: { _sd: ['street', 'flat'] }, languages: { _sd: [0, 1] } };
const WHOLE = { name: 'Ada', title: 'Dr', address: { street: 'Main Street', flat: 1 }, languages: ['de', 'en'] };

/** Counts the digests at each pointer, including those in disclosed values. */
function digests(value: Json, pointer = '', counts: Record<string, number> = {}): Record<string, number> {
  if (typeof value !== 'object' || value === null) return counts;
  if (Array.isArray(value)) {
    const entries = value as readonly Json[];
    const hidden = entries.filter((entry) => typeof entry === 'object' && entry !== null && '...' in entry);
    if (hidden.length > 0) counts[pointer] = hidden.length;
  } else if ('_sd' in value) counts[pointer] = (value['_sd'] as readonly Json[]).length;
  for (const [key, member] of Object.entries(value)) {
    if (key !== '_sd') digests(member, `${pointer}/${key}`, counts);
  }
  return counts;
}

describe('number of digests', () => {
  const prepared = (claims: JsonObject, frame: JsonObject = FRAME, schema: JsonObject = SCHEMA) =>
    prepareSdJwt({
      header: { alg: 'ES256' },
      alwaysVisible: { vct: 'urn:x' },
      claims,
      frame: padFrame(parseDisclosureFrame(frame), schema),
      random: (length) => Buffer.alloc(length, 7).map((byte, index) => (byte + index) % 251) as Buffer,
    });
  const payloadOf = (claims: JsonObject, frame?: JsonObject, schema?: JsonObject) =>
    JSON.parse(Buffer.from(prepared(claims, frame, schema).signingInput.split('.')[1] ?? '', 'base64url').toString()) as JsonObject;
  const numbers = (claims: JsonObject, frame?: JsonObject, schema?: JsonObject) => digests(payloadOf(claims, frame, schema));
  const disclosed = (claims: JsonObject) =>
    prepared(claims).disclosures.map((text) => JSON.parse(Buffer.from(text, 'base64url').toString()));

  it('is the same for a holder with all claims and for one without', () => {
    const full = numbers(WHOLE);
    expect(full).to.deep.equal({ '': 3, '/languages': 2 });
    expect(numbers({ languages: ['de', 'en'] })).to.deep.equal(full);
    expect(numbers({ name: 'Ada', languages: ['de'] })).to.deep.equal(full);
    expect(numbers({ title: null, languages: [] })).to.deep.equal(full);
  });

  it('is the same within a disclosed object', () => {
    const address = (flat: object) =>
      disclosed({ ...WHOLE, address: { street: 'Main Street', ...flat } }).find(([, name]) => name === 'address');
    expect(address({})[2]._sd).to.have.length(2);
    expect(address({ flat: 1 })[2]._sd).to.have.length(2);
  });

  it('counts no claim that is only in the frame, and adds decoys of the frame', () => {
    expect(numbers({ unknown: 1 }, FRAME)['']).to.equal(4);
    expect(numbers({}, FRAME)['']).to.equal(3);
    expect(numbers({}, { _sd: ['name', 'never'], _sd_decoy: 2 })['']).to.equal(3);
    expect(numbers({}, { _sd: ['name'] }, {})).to.deep.equal({});
    expect(numbers({ languages: [] }, { languages: { _sd: [0, 5] } })).to.deep.equal({ '/languages': 1 });
  });

  it('counts array elements and properties of the schema', () => {
    const list = (keywords: object) => ({ properties: { list: { type: 'array', ...keywords } } });
    const countDigests = (keywords: object) => numbers({ list: [] }, { list: { _sd: [0, 1, 2] } }, list(keywords))['/list'];
    expect(countDigests({ prefixItems: [{}, false], items: { type: 'string' } })).to.equal(2);
    expect(countDigests({ items: true })).to.equal(3);
    expect(countDigests({ items: true, maxItems: 2 })).to.equal(2);
    expect(countDigests({ prefixItems: [{}] }), 'entries without a schema').to.equal(1);
    expect(countDigests({})).to.equal(undefined);
  });

  it('follows references of the schema, and ignores invalid ones', () => {
    const countDigests = ($ref: string) =>
      numbers({ child: {} }, { child: { _sd: ['name'] } }, { properties: { name: {}, child: { $ref } } });
    expect(countDigests('#')).to.deep.equal({ '/child': 1 });
    for (const reference of ['#/$defs/none', '#/properties/name']) expect(countDigests(reference)).to.deep.equal({});
  });

  it('of a padded credential does not change its claims', async () => {
    const world = await aFactory();
    const configuration = aConfiguration({ vct: 'urn:x', disclosureFrame: FRAME, schema: SCHEMA });
    const claims = { name: 'Ada', languages: ['de'] };
    const { issuer, disclosures } = parseSdJwt(await world.make(configuration, claims));
    const { claims: read } = processDisclosures(issuer.payload, disclosures);
    expect(read).to.deep.include({ name: 'Ada' });
    expect(disclosures).to.have.length(2);
    expect(digests(issuer.payload)).to.deep.equal({ '': 3, '/languages': 2 });
    const salts = new Set((issuer.payload['_sd'] as readonly string[]).concat());
    expect(salts.size, 'all of them differ').to.equal(3);
  });
});
