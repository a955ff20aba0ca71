import { expect } from 'chai';
import sinon from 'sinon';
import type { SigningKey } from '../../../application/ports/kms.ts';
import { ResignTrustLists } from '../../../application/trust-lists/resign-trust-lists.ts';
import { ServeTrustList } from '../../../application/trust-lists/serve-trust-list.ts';
import { TrustListPublisher } from '../../../application/trust-lists/trust-list-publisher.ts';
import {
  CreateTrustList,
  DeleteTrustList,
  GetTrustList,
  GetTrustListVersion,
  ListTrustLists,
  ListTrustListVersions,
  ReplaceTrustList,
  UpdateTrustList,
  VersionListQuery,
} from '../../../application/trust-lists/trust-lists.ts';
import { writePemCertificates } from '../../../domain/formats/der/pem.ts';
import type { Failure } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { configurationOf, TrustListReplacement, TrustListUpdate } from '../../../domain/trust-lists/list-configuration.ts';
import { MAX_LISTS } from '../../../domain/trust-lists/published-list.ts';
import { type CertifiedKey, certify } from '../../support/test-certificates.ts';
import { ACME, type AdministrationWorld, anAdministration, aWorld, codeOf, endOf, type World } from '../administrators.ts';

const OURS = { type: 'internal', issuerKeyChainId: 'signing', info: { name: 'Acme', country: 'DE', streetAddress: 'Weg 1' } };

describe('trust lists that a tenant publishes', () => {
  let world: AdministrationWorld;
  let ca: CertifiedKey;
  let ended: CertifiedKey;
  const caller = () => world.caller(['issuance:manage']);
  const elsewhere = () => ({ ...caller(), tenantId: 'other' as TenantId });
  const create = (wanted: object = {}) =>
    new CreateTrustList(world).execute(caller(), TrustListReplacement.parse({ id: 'list', entities: [OURS], ...wanted }));
  const replace = (id: string, wanted: object = {}, by = caller()) =>
    new ReplaceTrustList(world).execute(by, id, TrustListReplacement.parse({ entities: [OURS], ...wanted }));
  const update = (id: string, changes: object = {}, by = caller()) =>
    new UpdateTrustList(world).execute(by, id, TrustListUpdate.parse(changes));
  const get = (id: string, by = caller()) => new GetTrustList(world).execute(by, id);
  const all = (by = caller()) => new ListTrustLists(world).execute(by);
  const remove = (id: string, by = caller()) => new DeleteTrustList(world).execute(by, id);
  const versions = (id: string, query: object = {}, by = caller()) =>
    new ListTrustListVersions(world).execute(by, id, VersionListQuery.parse(query));
  const version = (id: string, versionId: string, by = caller()) => new GetTrustListVersion(world).execute(by, id, versionId);
  const external = (...certificates: CertifiedKey[]) => ({
    type: 'external',
    issuerCertPem: writePemCertificates(certificates.map(({ certificate }) => certificate)),
    info: { name: 'Somebody', country: 'DE', streetAddress: 'Weg 1' },
  });

  before(async () => {
    ca = await certify({ name: 'CA', ca: true });
    ended = await certify({ name: 'Ended', ca: true, until: '2026-01-01T00:00:00Z' });
  });
  beforeEach(async () => {
    world = await anAdministration();
  });

  it('are in order of their ids, those of one tenant', async () => {
    await create();
    await create({ id: 'another' });
    expect((await all()).map(({ id }) => id)).to.deep.equal(['another', 'list']);
    expect(await all(elsewhere())).to.deep.equal([]);
  });

  it('are published with a number that increases with each version, under a given or generated id', async () => {
    const first = await create({ description: 'Ours' });
    expect(first).to.include({ id: 'list', description: 'Ours', sequenceNumber: 1, signedBy: 'trust-list' });
    expect(await get('list')).to.deep.equal(first);
    expect((await create({ id: undefined })).id).to.match(/^[\w-]{16,}$/);
    world.clock.forward(1_000);
    const second = await replace('list');
    expect(second).to.include({ sequenceNumber: 2 }).and.not.have.property('description');
    expect([second.createdAt, second.updatedAt]).to.deep.equal([first.createdAt, world.clock.now()]);
    expect(await update('list')).to.include({ sequenceNumber: 3 });
    expect((await get('list')).jwt).to.not.equal(second.jwt);
  });

  it('change the given properties, which are replaced entirely', async () => {
    await create({ description: 'Ours', keyChainId: 'trust-list' });
    const changed = await update('list', { entities: [external(ca)] });
    expect(changed).to.include({ description: 'Ours', keyChainId: 'trust-list' });
    expect(changed.entities).to.deep.equal([external(ca)]);
    expect(await update('list', { description: null, keyChainId: null })).to.not.have.any.keys('description', 'keyChainId');
  });

  it('are removed, and continue from their last number when they are created again', async () => {
    await create();
    await update('list');
    await remove('list');
    expect(await endOf(get('list'))).to.equal('not_found');
    expect(await create()).to.include({ sequenceNumber: 3 });
  });

  const refused: [string, () => object, string][] = [
    ['an unknown signer', () => ({ keyChainId: 'nothing' }), 'invalid_input keyChainId'],
    ['a signer for something else', () => ({ keyChainId: 'signing' }), 'invalid_input keyChainId'],
    ['an unknown issuer', () => ({ entities: [{ ...OURS, issuerKeyChainId: 'x' }] }), 'invalid_input entities.0.issuerKeyChainId'],
    [
      'an issuer that issues nothing',
      () => ({ entities: [{ ...OURS, issuerKeyChainId: 'access' }] }),
      'invalid_input entities.0.issuerKeyChainId',
    ],
    [
      'a revoker that revokes nothing',
      () => ({ entities: [{ ...OURS, revocationKeyChainId: 'access' }] }),
      'invalid_input entities.0.revocationKeyChainId',
    ],
    [
      'a text without certificate',
      () => ({ entities: [OURS, { ...external(), issuerCertPem: 'x' }] }),
      'invalid_input entities.1.issuerCertPem',
    ],
    ['a certificate that has ended', () => ({ entities: [external(ended)] }), 'invalid_input entities.0.issuerCertPem'],
    ['a chain out of order', () => ({ entities: [external(ca, ended)] }), 'invalid_input entities.0.issuerCertPem'],
    ['two that readers cannot tell apart', () => ({ entities: [OURS, { ...external(ca), info: OURS.info }] }), 'invalid_input entities.1'],
  ];
  for (const [what, wanted, end] of refused) {
    it(`are rejected with ${what}, when created and when changed`, async () => {
      expect(await endOf(create(wanted()))).to.match(new RegExp(`^${end}`));
      const before = await create();
      expect(await endOf(replace('list', wanted()))).to.match(new RegExp(`^${end}`));
      expect(await endOf(update('list', wanted()))).to.match(new RegExp(`^${end}`));
      expect(await all()).to.deep.equal([before]);
    });
  }

  const others: [string, () => Promise<unknown>, string][] = [
    ['a second one of an id', () => create(), 'conflict'],
    ['a read of an unknown id', () => get('nothing'), 'not_found'],
    ["a read of another tenant's", () => get('list', elsewhere()), 'not_found'],
    ['the replacement of an unknown id', () => replace('nothing'), 'not_found'],
    ['a replacement under another id', () => replace('list', { id: 'other' }), 'invalid_input id'],
    ['a change of an unknown id', () => update('nothing'), 'not_found'],
    ['a change of the id', () => update('list', { id: 'other' }), 'invalid_input id'],
    ['the removal of an unknown id', () => remove('nothing'), 'not_found'],
    ["the removal of another tenant's", () => remove('list', elsewhere()), 'not_found'],
    ['versions of an unknown id', () => versions('nothing'), 'not_found'],
    ["versions of another tenant's", () => versions('list', {}, elsewhere()), 'not_found'],
    ['a version of an unknown id', () => version('nothing', 'x'), 'not_found'],
    ['an unknown version', () => version('list', 'x'), 'not_found'],
  ];
  for (const [what, attempt, end] of others) {
    it(`reject ${what}: ${end}`, async () => {
      const before = await create();
      expect(await endOf(attempt())).to.equal(end);
      expect(await all()).to.deep.equal([before]);
    });
  }

  it('require a signing key: invalid_input keyChainId', async () => {
    await world.write(({ keyChains }) => keyChains.remove('trust-list'));
    expect(await endOf(create())).to.equal('invalid_input keyChainId');
  });

  it(`are limited to ${MAX_LISTS}: conflict`, async () => {
    const first = await create();
    await world.write(async ({ trustLists }) => {
      for (let copy = 1; copy < MAX_LISTS; copy++) await trustLists.add({ ...first, id: `copy-${copy}` });
    });
    expect(await endOf(create({ id: 'more' }))).to.equal('conflict');
    await remove('copy-1');
    expect(await endOf(create({ id: 'more' }))).to.equal('done');
  });

  describe('have former versions', () => {
    beforeEach(async () => {
      await world.store.prepare('eight releases of a list', async () => {
        await create({ description: 'release 1' });
        for (let release = 2; release <= 8; release++) await update('list', { description: `release ${release}` });
      });
    });
    const numbers = (page: Awaited<ReturnType<typeof versions>>) => page.versions.map(({ list }) => list.sequenceNumber);

    it('newest first, without the present one', async () => {
      const page = await versions('list');
      expect(numbers(page)).to.deep.equal([7, 6, 5, 4, 3, 2, 1]);
      expect(page).to.not.have.property('next');
      expect(page.versions[0]?.list).to.include({ description: 'release 7' });
    });

    for (const [limit, sort] of [1, 3, 4, 7].flatMap(
      (limit) =>
        [
          [limit, 'desc'],
          [limit, 'asc'],
        ] as const,
    )) {
      it(`in pages of ${limit}, ${sort}`, async () => {
        const found: number[][] = [];
        let cursor: string | undefined;
        do {
          const page = await versions('list', { limit, sort, ...(cursor !== undefined && { cursor }) });
          found.push(numbers(page));
          cursor = page.next;
        } while (cursor !== undefined);
        const newest = [7, 6, 5, 4, 3, 2, 1];
        expect(found.flat()).to.deep.equal(sort === 'asc' ? newest.toReversed() : newest);
        for (const page of found) expect(page.length).to.be.at.most(limit);
      });
    }

    it('by number, until the list is removed', async () => {
      const [newest] = (await versions('list')).versions;
      const id = newest?.id ?? '';
      expect(await version('list', id)).to.deep.equal(newest);
      await create({ id: 'another' });
      expect(await endOf(version('another', id))).to.equal('not_found');
      await remove('list');
      expect(await endOf(version('list', id))).to.equal('not_found');
    });

    for (const query of [{ limit: 0 }, { limit: 501 }, { sort: 'up' }, { cursor: 'x' }, { cursor: '-1' }]) {
      it(`but not for ${JSON.stringify(query)}`, () => {
        expect(VersionListQuery.safeParse(query).success).to.equal(false);
      });
    }
  });
});

const ENTITIES = [
  { type: 'internal' as const, issuerKeyChainId: 'signing', info: { name: 'Acme', country: 'DE', streetAddress: 'Weg 1' } },
];

/** What happens in another process while this one waits for a signature. */
describe('trust list version', () => {
  let world: World;
  let here: TrustListPublisher;
  let elsewhere: TrustListPublisher;

  beforeEach(async () => {
    world = aWorld();
    await world.createTenant();
    [here, elsewhere] = [new TrustListPublisher(world), new TrustListPublisher(world)];
  });

  const publish = (publisher: TrustListPublisher, description: string) =>
    publisher.publish(ACME, 'list', 'system', () => configurationOf('list', { description, entities: ENTITIES }));
  const remove = () => elsewhere.remove(ACME, 'list', 'system');
  const stored = () =>
    world.store.forTenant(ACME, async ({ trustLists }) => ({
      list: await trustLists.find('list'),
      versions: (await trustLists.versions('list')).map(({ list }) => list.description),
    }));
  /** Runs `event` before the signature number `which` of this process is there. */
  const during = (which: number | 'all', event: () => Promise<unknown>) => {
    const sign = world.kms.sign.bind(world.kms);
    let count = 0;
    let isInside = false;
    return sinon.stub(world.kms, 'sign').callsFake(async (key: SigningKey, data: Uint8Array | string) => {
      if (!isInside && (++count === which || which === 'all')) {
        isInside = true;
        await event();
        isInside = false;
      }
      return sign(key, data);
    });
  };

  it('is created again after a concurrent publication', async () => {
    await publish(here, 'first');
    during(1, () => publish(elsewhere, 'theirs'));
    expect(await publish(here, 'ours')).to.include({ sequenceNumber: 3, description: 'ours' });
    const { list, versions } = await stored();
    expect([list?.sequenceNumber, list?.description]).to.deep.equal([3, 'ours']);
    expect(versions).to.deep.equal(['theirs', 'first']);
  });

  it('never reuses a number, even of a removed version', async () => {
    during(1, async () => {
      await publish(elsewhere, 'came');
      await remove();
    });
    expect(await publish(here, 'ours')).to.include({ sequenceNumber: 2 });
  });

  it('does not restore a list that was removed concurrently, unless it is new', async () => {
    await publish(here, 'first');
    during(1, remove);
    const changed = here.publish(ACME, 'list', 'system', ({ storedList: known }) =>
      known === undefined ? undefined : configurationOf('list', { entities: [] }),
    );
    expect(await changed).to.equal(undefined);
    expect((await stored()).list).to.equal(undefined);
  });

  it('references no key chain that was removed concurrently', async () => {
    const lose = (id: string) => () => world.store.forTenant(ACME, ({ keyChains }) => keyChains.remove(id), { by: 'system' });
    const signer = during(1, lose('trust-list'));
    expect(await codeOf(publish(here, 'ours'))).to.equal('invalid_input');
    signer.restore();
    const other = aWorld();
    await other.createTenant();
    world = other;
    here = new TrustListPublisher(world);
    during(1, lose('signing'));
    expect(await codeOf(publish(here, 'ours'))).to.equal('invalid_input');
    expect((await stored()).list).to.equal(undefined);
  });

  it('fails after repeated concurrent publications', async () => {
    await publish(here, 'first');
    const sign = during('all', () => publish(elsewhere, 'theirs'));
    expect(await codeOf(publish(here, 'ours'))).to.equal('conflict');
    expect(sign.callCount).to.equal(40);
    expect((await stored()).list?.sequenceNumber).to.equal(21);
  });

  it('waits for earlier ones in the same process, and signs once', async () => {
    const sign = sinon.spy(world.kms, 'sign');
    const releases = await Promise.all(['a', 'b', 'c', 'd'].map((name) => publish(here, name)));
    expect(releases.map((release) => release?.sequenceNumber)).to.deep.equal([1, 2, 3, 4]);
    expect(sign.callCount).to.equal(4);
    const failing = here.publish(ACME, 'list', 'system', () => {
      throw new Error('broken');
    });
    const after = publish(here, 'e');
    expect(await failing.catch((error: Error) => error.message)).to.equal('broken');
    expect((await after)?.sequenceNumber).to.equal(5);
  });

  it('is signed again after its signer was compromised, and only then', async () => {
    await publish(here, 'first');
    const anew = new ResignTrustLists({ ...world, trustListPublisher: here });
    const caller = world.caller(['issuance:manage']);
    const release = async () => (await stored()).list?.sequenceNumber;
    await anew.execute(caller, []);
    await anew.execute(caller, [{ id: 'signing' }]);
    expect(await release()).to.equal(1);
    await anew.execute(caller, [{ id: 'trust-list' }]);
    expect(await release()).to.equal(2);
  });

  it('is unchanged when it cannot be signed again, which is logged', async () => {
    await publish(here, 'first');
    sinon.stub(world.kms, 'sign').rejects(new Error('the key store is away'));
    const error = sinon.spy(world.log, 'error');
    const anew = new ResignTrustLists({ ...world, trustListPublisher: here });
    await anew.execute(world.caller(['issuance:manage']), [{ id: 'trust-list' }]);
    expect((await stored()).list?.sequenceNumber).to.equal(1);
    expect(error.firstCall.args.at(1)).to.deep.equal({ tenantId: ACME, trustListId: 'list' });
  });
});

const DAY_MS = 86_400_000;

describe('ServeTrustList', () => {
  let world: World;
  let serve: ServeTrustList;
  let jwt: string;
  let end: number;

  before(async () => {
    world = aWorld();
    serve = new ServeTrustList(world);
    await world.createTenant();
    const publisher = new TrustListPublisher(world);
    const published = await publisher.publish(ACME, 'list', 'system', () =>
      configurationOf('list', { description: 'first', entities: ENTITIES }),
    );
    if (published === undefined) throw new Error('no list');
    jwt = published.jwt;
    end = published.nextUpdate.getTime();
  });

  const at = async <T>(time: number, work: () => Promise<T>) => {
    const now = world.clock.time;
    world.clock.time = new Date(time);
    try {
      return await work();
    } finally {
      world.clock.time = now;
    }
  };

  it('serves the release as it was signed, for at most an hour', async () => {
    const served = await serve.execute(ACME, 'list');
    expect([served.jwt, served.maxAgeSeconds]).to.deep.equal([jwt, 3600]);
    expect(served.etag).to.equal(`"${jwt.split('.')[2]?.slice(0, 43)}"`);
  });

  it('limits caching to the validity of the list', async () => {
    expect(end - world.clock.now().getTime()).to.be.closeTo(30 * DAY_MS, 1000);
    const { maxAgeSeconds } = await at(end - 90_000, () => serve.execute(ACME, 'list'));
    expect(maxAgeSeconds).to.equal(90);
  });

  it('serves no expired list, and requests a retry', async () => {
    const failure = await at(end, () => serve.execute(ACME, 'list').catch((error: Failure) => error));
    if (!('details' in failure)) throw new Error('nothing failed');
    expect([failure.code, failure.details.retryAfterSeconds]).to.deep.equal(['unavailable', 300]);
  });

  it('fails for another name, or another tenant', async () => {
    expect(await codeOf(serve.execute(ACME, 'none'))).to.equal('not_found');
    expect(await codeOf(serve.execute('nobody' as TenantId, 'list'))).to.equal('not_found');
  });

  it('serves suspended tenants, whose lists stay published', async () => {
    await world.store.forTenant(ACME, async ({ tenant }) => tenant.save({ ...(await tenant.get()), status: 'suspended' }), {
      by: 'system',
    });
    expect((await serve.execute(ACME, 'list')).jwt).to.equal(jwt);
  });
});
