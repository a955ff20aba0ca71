import { expect } from 'chai';
import { StatusAllocator } from '../../../application/status-lists/status-allocator.ts';
import {
  CreateStatusList,
  DeleteStatusList,
  GetStatusList,
  ListStatusLists,
  UpdateStatusList,
} from '../../../application/status-lists/status-lists.ts';
import { UpdateOwnSettings } from '../../../application/tenants/own-settings.ts';
import { CredentialConfigurationBody } from '../../../domain/issuance/configuration.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import {
  MAX_UNUSED_LISTS,
  StatusListCreation,
  StatusListUpdate,
} from '../../../domain/status-lists/list-definition.ts';
import type { StatusList } from '../../../domain/status-lists/status-list.ts';
import { type AdministrationWorld, anAdministration, endOf } from '../administration/kit.ts';
import { ACME } from '../administration/world.ts';

describe('Status lists, for administrators', () => {
  let world: AdministrationWorld & { readonly statusAllocator: StatusAllocator };
  const caller = (allowed: string[] | null = null) =>
    world.caller(['issuance:manage'], { allowedIssuanceConfigs: allowed });
  const elsewhere = () => ({ ...caller(), tenantId: 'other' as TenantId });
  const create = (wanted: object = {}) =>
    new CreateStatusList(world).execute(caller(), StatusListCreation.parse(wanted));
  const get = (id: string, by = caller()) => new GetStatusList(world).execute(by, id);
  const all = (by = caller()) => new ListStatusLists(world).execute(by);
  const update = (id: string, changes: object, by = caller()) =>
    new UpdateStatusList(world).execute(by, id, StatusListUpdate.parse(changes));
  const remove = (id: string, by = caller()) => new DeleteStatusList(world).execute(by, id);
  /** A credential gets an entry. */
  const use = ({ id, keyChainId }: StatusList) =>
    world.store.lists(ACME).takeStatusRun({ id, keyChainId }, 1);

  beforeEach(async () => {
    const made = await anAdministration();
    world = { ...made, statusAllocator: new StatusAllocator(made) };
    const now = world.clock.now();
    const write = () =>
      world.write(async ({ credentialConfigurations, keyChains }) => {
        for (const id of ['card', 'badge']) {
          const config = { format: 'dc+sd-jwt', display: [{ name: id, locale: 'en' }] };
          const body = CredentialConfigurationBody.parse({ id, config, statusManagement: true });
          await credentialConfigurations.put({ ...body, createdAt: now, updatedAt: now });
        }
        // Under a CA of its own, which readers of the credentials do not trust.
        const { root, active } = await keyChains.get('access');
        const other = {
          ...(await keyChains.get('status-list')),
          id: 'elsewhere',
          createdAt: new Date(now.getTime() + 1),
        };
        await keyChains.add({ ...other, active, ...(root && { root }) });
      });
    await world.store.prepare('a card and a badge, and a key chain elsewhere', write);
  });

  it('are made with the shape that holds at the time, or one of their own', async () => {
    expect(await create()).to.include({
      bits: 1,
      capacity: 100_000,
      ttlSeconds: 3600,
      usedEntries: 0,
      keyChainId: null,
    });
    world.clock.forward(1);
    await new UpdateOwnSettings(world).execute(caller(), {
      statusListConfig: { bits: 2, capacity: 400, ttl: 900 },
    });
    expect(await create()).to.include({ bits: 2, capacity: 400, ttlSeconds: 900 });
    world.clock.forward(1);
    expect(await create({ bits: 8, capacity: 100, ttl: null, immediateUpdate: true })).to.include({
      ...{ bits: 8, capacity: 100, ttlSeconds: 900, immediateUpdate: true },
    });
    expect((await all()).map(({ bits }) => bits)).to.deep.equal([1, 2, 8]);
  });

  const bound: [string, object, object][] = [
    ['nobody', {}, { credentialConfigurationId: null, keyChainId: null }],
    [
      'one configuration',
      { credentialConfigurationId: 'card' },
      { credentialConfigurationId: 'card', keyChainId: null },
    ],
    [
      'one configuration and its signer',
      { credentialConfigurationId: 'card', keyChainId: 'signing' },
      { credentialConfigurationId: 'card', keyChainId: 'signing' },
    ],
    [
      'a key chain',
      { keyChainId: 'elsewhere' },
      { credentialConfigurationId: null, keyChainId: 'elsewhere' },
    ],
    [
      'the default, said as null',
      { keyChainId: null },
      { credentialConfigurationId: null, keyChainId: null },
    ],
  ];
  for (const [what, wanted, binding] of bound) {
    it(`are bound to ${what}`, async () => {
      const list = await create(wanted);
      expect(list).to.include(binding);
      expect(await get(list.id)).to.deep.equal(list);
    });
  }

  const refused: [string, object, string][] = [
    ['an unknown configuration', { credentialConfigurationId: 'nothing' }, 'credentialConfigurationId'],
    ['an unknown key chain', { keyChainId: 'nothing' }, 'keyChainId'],
    ['a key chain for something else', { keyChainId: 'access' }, 'keyChainId'],
    [
      'a key chain that readers of the credentials do not trust',
      { credentialConfigurationId: 'card', keyChainId: 'elsewhere' },
      'keyChainId',
    ],
  ];
  for (const [what, wanted, path] of refused) {
    it(`are neither made for ${what}, nor bound to it`, async () => {
      const list = await create();
      expect(await endOf(create(wanted))).to.equal(`invalid_input ${path}`);
      expect(await endOf(update(list.id, wanted))).to.equal(`invalid_input ${path}`);
      expect(await all()).to.deep.equal([list]);
    });
  }

  const documents: [object, string][] = [
    [{ bits: 3 }, 'bits'],
    [{ capacity: 99 }, 'capacity'],
    [{ capacity: 10_000_001 }, 'capacity'],
    [{ ttl: 59 }, 'ttl'],
  ];
  for (const [wanted, path] of documents) {
    it(`are not made with ${JSON.stringify(wanted)}`, () => {
      const { error } = StatusListCreation.safeParse(wanted);
      expect(error?.issues.map((issue) => issue.path.join('.'))).to.deep.equal([path]);
    });
  }

  it('serve others from now on, are signed by others, and every process is told', async () => {
    const { id } = await create();
    expect(await update(id, { credentialConfigurationId: 'card' })).to.include({
      id,
      credentialConfigurationId: 'card',
    });
    expect(await update(id, { credentialConfigurationId: null, keyChainId: 'elsewhere' })).to.include({
      ...{ credentialConfigurationId: null, keyChainId: 'elsewhere' },
    });
    expect(await update(id, {})).to.include({ keyChainId: 'elsewhere' });
    expect(world.woken).to.deep.equal(Array(3).fill({ type: 'status-list', tenantId: ACME, listId: id }));
  });

  it('stay under a CA that readers trust once credentials use them', async () => {
    const list = await create({ keyChainId: 'status-list' });
    await use(list);
    expect(await endOf(update(list.id, { keyChainId: 'elsewhere' }))).to.equal('conflict');
    expect(await update(list.id, { keyChainId: 'signing' }), 'under the same CA').to.include({
      keyChainId: 'signing',
    });
    expect(await update(list.id, { credentialConfigurationId: 'card' })).to.include({ usedEntries: 1 });
  });

  it('do not change to another CA when they come into use meanwhile', async () => {
    const list = await create({ keyChainId: 'status-list' });
    const { forTenant } = world.store;
    world.store.forTenant = (async (...parameters: Parameters<typeof forTenant>) => {
      const [tenantId, work, ...rest] = parameters as unknown as [TenantId, (own: object) => unknown, never];
      const raced = (own: { statusLists: { get(id: string): Promise<StatusList> } }) => {
        const get = async (id: string) => {
          const known = await own.statusLists.get(id);
          return { ...known, usedEntries: 0 };
        };
        return work({ ...own, statusLists: Object.assign(Object.create(own.statusLists), { get }) });
      };
      return forTenant.call(world.store, tenantId, raced as never, ...rest);
    }) as typeof forTenant;
    await use(list);
    expect(await endOf(update(list.id, { keyChainId: 'elsewhere' }))).to.equal('conflict');
  });

  it('go while no credential uses them, and every process is told', async () => {
    const [unused, used] = [await create(), await create()];
    await use(used);
    await remove(unused.id);
    expect((await all()).map(({ id }) => id)).to.deep.equal([used.id]);
    expect(world.woken).to.deep.equal([{ type: 'status-list', tenantId: ACME, listId: unused.id }]);
    expect(await endOf(remove(unused.id))).to.equal('not_found');
    expect(await endOf(remove(used.id))).to.equal('conflict');
  });

  it(`are at most ${MAX_UNUSED_LISTS} that nothing uses`, async () => {
    const [first] = [await create({ capacity: 100 })];
    await world.write(async ({ statusLists }) => {
      for (let copy = 1; copy < MAX_UNUSED_LISTS; copy++)
        await statusLists.add({ ...first, id: `copy-${copy}` });
    });
    expect(await endOf(create({ capacity: 100 }))).to.equal('conflict');
    await use(first);
    expect(await endOf(create({ capacity: 100 })), 'one is in use now').to.equal('done');
  });

  it('are seen by a restricted client when they serve all or its own', async () => {
    const [shared, card, badge] = [
      await create(),
      await create({ credentialConfigurationId: 'card' }),
      await create({ credentialConfigurationId: 'badge' }),
    ];
    const narrow = () => caller(['card']);
    expect((await all(narrow())).map(({ id }) => id)).to.have.members([shared.id, card.id]);
    expect(await get(card.id, narrow())).to.include({ id: card.id });
    expect(await endOf(get(badge.id, narrow()))).to.equal('not_found');
  });

  it('are those of one tenant', async () => {
    const { id } = await create();
    for (const unknown of [
      () => get('nothing'),
      () => update('nothing', {}),
      () => remove('nothing'),
      () => get(id, elsewhere()),
      () => update(id, {}, elsewhere()),
      () => remove(id, elsewhere()),
    ])
      expect(await endOf(unknown())).to.equal('not_found');
    expect(await all(elsewhere())).to.deep.equal([]);
  });
});
