import { createHash, randomBytes } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import { StatusAllocator } from '../../../application/status-lists/status-allocator.ts';
import {
  CreateStatusList,
  DeleteStatusList,
  GetStatusList,
  ListStatusLists,
  UpdateStatusList,
} from '../../../application/status-lists/status-lists.ts';
import { UpdateTenantSettings } from '../../../application/tenants/tenant-settings.ts';
import { CredentialConfigurationBody } from '../../../domain/issuance/configuration.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { allocateFrom, indexAt, prepareAllocation } from '../../../domain/status-lists/allocation.ts';
import { CounterReserve } from '../../../domain/status-lists/counter-reserve.ts';
import { MAX_UNUSED_LISTS, StatusListCreation, StatusListUpdate } from '../../../domain/status-lists/list-definition.ts';
import type { StatusList } from '../../../domain/status-lists/status-list.ts';
import { ACME, type AdministrationWorld, anAdministration, outcomeOf } from '../administrators.ts';

describe('status lists for administrators', () => {
  let world: AdministrationWorld & { readonly statusAllocator: StatusAllocator };
  const caller = (allowed: string[] | null = null) => world.caller(['issuance:manage'], { allowedIssuanceConfigs: allowed });
  const otherTenant = () => ({ ...caller(), tenantId: 'other' as TenantId });
  const create = (body: object = {}) => new CreateStatusList(world).execute(caller(), StatusListCreation.parse(body));
  const get = (id: string, by = caller()) => new GetStatusList(world).execute(by, id);
  const listAll = (by = caller()) => new ListStatusLists(world).execute(by);
  const update = (id: string, changes: object, by = caller()) =>
    new UpdateStatusList(world).execute(by, id, StatusListUpdate.parse(changes));
  const remove = (id: string, by = caller()) => new DeleteStatusList(world).execute(by, id);
  /** A credential gets an entry. */
  const allocateEntry = ({ id, keyChainId }: StatusList) => world.store.lists(ACME).allocateStatusRun({ id, keyChainId }, 1);

  beforeEach(async () => {
    const administration = await anAdministration();
    world = { ...administration, statusAllocator: new StatusAllocator(administration) };
    const now = world.clock.now();
    const write = () =>
      world.write(async ({ credentialConfigurations, keyChains }) => {
        for (const id of ['card', 'badge']) {
          const config = { format: 'dc+sd-jwt', display: [{ name: id, locale: 'en' }] };
          const body = CredentialConfigurationBody.parse({ id, config, statusManagement: true });
          await credentialConfigurations.put({ ...body, createdAt: now, updatedAt: now });
        }
        // A chain under a separate CA, which verifiers of the credentials do not trust.
        const { root, active } = await keyChains.get('access');
        const otherChain = { ...(await keyChains.get('status-list')), id: 'elsewhere', createdAt: new Date(now.getTime() + 1) };
        await keyChains.add({ ...otherChain, active, ...(root && { root }) });
      });
    await world.store.prepare('a card and a badge, and a key chain elsewhere', write);
  });

  it('are created with the current default parameters, or their own', async () => {
    expect(await create()).to.include({ bits: 1, capacity: 100_000, ttlSeconds: 3600, usedEntries: 0, keyChainId: null });
    world.clock.forward(1);
    await new UpdateTenantSettings(world).execute(caller(), { statusListConfig: { bits: 2, capacity: 400, ttl: 900 } });
    expect(await create()).to.include({ bits: 2, capacity: 400, ttlSeconds: 900 });
    world.clock.forward(1);
    expect(await create({ bits: 8, capacity: 100, ttl: null, immediateUpdate: true })).to.include({
      ...{ bits: 8, capacity: 100, ttlSeconds: 900, immediateUpdate: true },
    });
    expect((await listAll()).map(({ bits }) => bits)).to.deep.equal([1, 2, 8]);
  });

  const bound: [string, object, object][] = [
    ['nothing', {}, { credentialConfigurationId: null, keyChainId: null }],
    ['one configuration', { credentialConfigurationId: 'card' }, { credentialConfigurationId: 'card', keyChainId: null }],
    [
      'one configuration and its signer',
      { credentialConfigurationId: 'card', keyChainId: 'signing' },
      { credentialConfigurationId: 'card', keyChainId: 'signing' },
    ],
    ['a key chain', { keyChainId: 'elsewhere' }, { credentialConfigurationId: null, keyChainId: 'elsewhere' }],
    ['the default, as null', { keyChainId: null }, { credentialConfigurationId: null, keyChainId: null }],
  ];
  for (const [description, body, binding] of bound) {
    it(`are bound to ${description}`, async () => {
      const list = await create(body);
      expect(list).to.include(binding);
      expect(await get(list.id)).to.deep.equal(list);
    });
  }

  const rejectedBodies: [string, object, string][] = [
    ['an unknown configuration', { credentialConfigurationId: 'nothing' }, 'credentialConfigurationId'],
    ['an unknown key chain', { keyChainId: 'nothing' }, 'keyChainId'],
    ['a key chain for another purpose', { keyChainId: 'access' }, 'keyChainId'],
    [
      'a key chain that verifiers of the credentials do not trust',
      { credentialConfigurationId: 'card', keyChainId: 'elsewhere' },
      'keyChainId',
    ],
  ];
  for (const [description, body, path] of rejectedBodies) {
    it(`are neither created for ${description}, nor assigned to it`, async () => {
      const list = await create();
      expect(await outcomeOf(create(body))).to.equal(`invalid_input ${path}`);
      expect(await outcomeOf(update(list.id, body))).to.equal(`invalid_input ${path}`);
      expect(await listAll()).to.deep.equal([list]);
    });
  }

  const documents: [object, string][] = [
    [{ bits: 3 }, 'bits'],
    [{ capacity: 99 }, 'capacity'],
    [{ capacity: 10_000_001 }, 'capacity'],
    [{ ttl: 59 }, 'ttl'],
  ];
  for (const [body, path] of documents) {
    it(`are not created with ${JSON.stringify(body)}`, () => {
      const { error } = StatusListCreation.safeParse(body);
      expect(error?.issues.map((issue) => issue.path.join('.'))).to.deep.equal([path]);
    });
  }

  it('can be assigned to another configuration and key chain, and every process is notified', async () => {
    const { id } = await create();
    expect(await update(id, { credentialConfigurationId: 'card' })).to.include({ id, credentialConfigurationId: 'card' });
    expect(await update(id, { credentialConfigurationId: null, keyChainId: 'elsewhere' })).to.include({
      ...{ credentialConfigurationId: null, keyChainId: 'elsewhere' },
    });
    expect(await update(id, {})).to.include({ keyChainId: 'elsewhere' });
    expect(world.wakeUps).to.deep.equal(Array(3).fill({ type: 'status-list', tenantId: ACME, listId: id }));
  });

  it('keep a trusted CA once credentials use them', async () => {
    const list = await create({ keyChainId: 'status-list' });
    await allocateEntry(list);
    expect(await outcomeOf(update(list.id, { keyChainId: 'elsewhere' }))).to.equal('conflict');
    expect(await update(list.id, { keyChainId: 'signing' }), 'under the same CA').to.include({ keyChainId: 'signing' });
    expect(await update(list.id, { credentialConfigurationId: 'card' })).to.include({ usedEntries: 1 });
  });

  it('do not change to another CA when they are used concurrently', async () => {
    const list = await create({ keyChainId: 'status-list' });
    const { forTenant } = world.store;
    world.store.forTenant = (async (...parameters: Parameters<typeof forTenant>) => {
      const [tenantId, work, ...rest] = parameters as unknown as [TenantId, (repositories: object) => unknown, never];
      const racedRepositories = (repositories: { statusLists: { get(id: string): Promise<StatusList> } }) => {
        const get = async (id: string) => {
          const storedList = await repositories.statusLists.get(id);
          return { ...storedList, usedEntries: 0 };
        };
        return work({ ...repositories, statusLists: Object.assign(Object.create(repositories.statusLists), { get }) });
      };
      return forTenant.call(world.store, tenantId, racedRepositories as never, ...rest);
    }) as typeof forTenant;
    await allocateEntry(list);
    expect(await outcomeOf(update(list.id, { keyChainId: 'elsewhere' }))).to.equal('conflict');
  });

  it('can be removed while no credential uses them, and every process is notified', async () => {
    const [unusedList, usedList] = [await create(), await create()];
    await allocateEntry(usedList);
    await remove(unusedList.id);
    expect((await listAll()).map(({ id }) => id)).to.deep.equal([usedList.id]);
    expect(world.wakeUps).to.deep.equal([{ type: 'status-list', tenantId: ACME, listId: unusedList.id }]);
    expect(await outcomeOf(remove(unusedList.id))).to.equal('not_found');
    expect(await outcomeOf(remove(usedList.id))).to.equal('conflict');
  });

  it(`are limited to ${MAX_UNUSED_LISTS} unused ones`, async () => {
    const [first] = [await create({ capacity: 100 })];
    await world.write(async ({ statusLists }) => {
      for (let copy = 1; copy < MAX_UNUSED_LISTS; copy++) await statusLists.add({ ...first, id: `copy-${copy}` });
    });
    expect(await outcomeOf(create({ capacity: 100 }))).to.equal('conflict');
    await allocateEntry(first);
    expect(await outcomeOf(create({ capacity: 100 })), 'one list is in use').to.equal('done');
  });

  it('are visible to a restricted client when they are for all configurations or an allowed one', async () => {
    const [shared, card, badge] = [
      await create(),
      await create({ credentialConfigurationId: 'card' }),
      await create({ credentialConfigurationId: 'badge' }),
    ];
    const restricted = () => caller(['card']);
    expect((await listAll(restricted())).map(({ id }) => id)).to.have.members([shared.id, card.id]);
    expect(await get(card.id, restricted())).to.include({ id: card.id });
    expect(await outcomeOf(get(badge.id, restricted()))).to.equal('not_found');
  });

  it('are returned for their tenant only', async () => {
    const { id } = await create();
    for (const unknownConfiguration of [
      () => get('nothing'),
      () => update('nothing', {}),
      () => remove('nothing'),
      () => get(id, otherTenant()),
      () => update(id, {}, otherTenant()),
      () => remove(id, otherTenant()),
    ])
      expect(await outcomeOf(unknownConfiguration())).to.equal('not_found');
    expect(await listAll(otherTenant())).to.deep.equal([]);
  });
});

const SECRET = createHash('sha256').update('a secret for tests').digest();

function allocate(secret: Uint8Array, first: number, count: number, capacity: number): readonly number[] {
  return allocateFrom(prepareAllocation(secret, capacity), first, count);
}

function isPermutation(secret: Uint8Array, capacity: number): boolean {
  const marks = new Uint8Array(capacity);
  for (const index of allocate(secret, 0, capacity, capacity)) marks[index] = 1;
  return marks.every((mark) => mark === 1);
}

describe('status list allocation', () => {
  it('allocates every index of a list exactly once', () => {
    for (const capacity of [1, 2, 3, 7, 8, 99, 100, 101, 104, 1000, 1024, 65_537, 100_000, 1_048_576]) {
      expect(isPermutation(SECRET, capacity), String(capacity)).to.equal(true);
    }
  });

  it('is a permutation for any secret and capacity', () => {
    const secret = fc.uint8Array({ minLength: 32, maxLength: 32 });
    fc.assert(
      fc.property(secret, fc.integer({ min: 1, max: 3000 }), (key, capacity) => isPermutation(key, capacity)),
      { numRuns: 60 },
    );
  });

  it('maps a run of counters to indices, for any start of the run', () => {
    const run = fc.tuple(fc.nat(900), fc.nat(100));
    const prepared = prepareAllocation(SECRET, 1000);
    const full = allocate(SECRET, 0, 1000, 1000);
    fc.assert(
      fc.property(run, ([first, count]) => {
        expect(allocateFrom(prepared, first, count)).to.deep.equal(full.slice(first, first + count));
        expect(indexAt(prepared, first)).to.equal(full[first]);
      }),
    );
  });

  // Lists live for years. A change of the derivation would allocate an index twice.
  it('is deterministic', () => {
    expect(allocate(SECRET, 0, 6, 100)).to.deep.equal([19, 12, 30, 89, 27, 22]);
    expect(allocate(SECRET, 0, 6, 100_000)).to.deep.equal([36184, 35476, 14511, 48142, 84135, 70019]);
  });

  it('depends on the secret', () => {
    const capacity = 100_000;
    const [first, second] = [SECRET, randomBytes(32)].map((secret) => allocate(secret, 0, 1000, capacity));
    const equal = first?.filter((index, i) => index === second?.[i]).length;
    expect(equal).to.be.lessThan(10);
  });

  it('depends on the capacity', () => {
    expect(allocate(SECRET, 0, 20, 100_000)).not.to.deep.equal(allocate(SECRET, 0, 20, 100_001));
  });

  it('does not map consecutive counters to adjacent indices', () => {
    const indices = allocate(SECRET, 0, 100_000, 100_000);
    const steps = indices.slice(1).map((index, i) => Math.abs(index - (indices[i] ?? 0)));
    // A random permutation has two such pairs on average.
    expect(steps.filter((step) => step === 1).length).to.be.lessThan(12);
    // The mean distance of neighbours is a third of the range.
    const mean = steps.reduce((sum, step) => sum + step, 0) / steps.length;
    expect(mean).to.be.within(33_000, 33_700);
  });

  it('spreads the first counters over the whole list', () => {
    const buckets = new Array<number>(10).fill(0);
    for (const index of allocate(SECRET, 0, 10_000, 100_000)) {
      const bucket = Math.floor(index / 10_000);
      buckets[bucket] = (buckets[bucket] ?? 0) + 1;
    }
    for (const count of buckets) expect(count).to.be.within(880, 1120);
  });

  it('rejects counters outside the list, short secrets and odd capacities', () => {
    const prepared = prepareAllocation(SECRET, 100);
    for (const counter of [-1, 100, 1.5, Number.NaN]) {
      expect(() => indexAt(prepared, counter)).to.throw(RangeError);
    }
    for (const [first, count] of [
      [90, 11],
      [0, -1],
      [0, 1.5],
    ] as const) {
      expect(() => allocateFrom(prepared, first, count)).to.throw(RangeError, 'not enough free entries');
    }
    expect(() => prepareAllocation(SECRET.subarray(1), 100)).to.throw(RangeError);
    for (const capacity of [0, -1, 1.5, 2 ** 28]) {
      expect(() => prepareAllocation(SECRET, capacity)).to.throw(RangeError, 'The capacity is not allowed');
    }
  });
});

describe('reserve of counters', () => {
  it('assigns each counter once', () => {
    const reserve = new CounterReserve(8);
    reserve.add(10, 20);
    expect([reserve.take(4), reserve.take(4), reserve.take(4), reserve.take(2)]).to.deep.equal([10, 14, undefined, 18]);
    expect(reserve.take(1)).to.equal(undefined);
  });

  it('merges returned counters in any order', () => {
    const reserve = new CounterReserve(8);
    for (const first of [20, 0, 30, 10]) reserve.add(first, first + 10);
    expect(reserve.take(40)).to.equal(0);
    reserve.add(5, 5);
    expect(reserve.take(1), 'an empty range').to.equal(undefined);
    reserve.add(0, 10);
    reserve.add(5, 5);
    expect([reserve.take(10), reserve.take(1)]).to.deep.equal([0, undefined]);
    reserve.add(5, 15);
    expect(reserve.take(10), 'where others were before').to.equal(5);
  });

  it('counts the counters below a limit', () => {
    const reserve = new CounterReserve(8);
    reserve.add(10, 20);
    reserve.add(30, 40);
    const counts = [0, 10, 15, 20, 30, 31, 40, 50].map((endIndex) => reserve.countBelow(endIndex));
    expect(counts).to.deep.equal([0, 0, 5, 10, 10, 11, 20, 20]);
    reserve.take(4);
    expect(reserve.countBelow(40)).to.equal(16);
  });

  it('rejects a duplicate counter, which two credentials would share', () => {
    const reserve = new CounterReserve(8);
    reserve.add(0, 10);
    for (const [first, endIndex] of [
      [0, 10],
      [9, 12],
      [3, 4],
    ] as const)
      expect(() => reserve.add(first, endIndex), `${first} to ${endIndex}`).to.throw('already stored');
    expect([reserve.take(10), reserve.take(1)]).to.deep.equal([0, undefined]);
  });

  it('is limited, and drops the shortest range first', () => {
    const reserve = new CounterReserve(2);
    reserve.add(0, 5);
    reserve.add(10, 11);
    reserve.add(20, 23);
    expect([reserve.take(5), reserve.take(3), reserve.take(1)]).to.deep.equal([0, 20, undefined]);
  });
});
