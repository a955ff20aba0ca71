import { expect } from 'chai';
import { PickUpSecret, RotateSecret } from '../../../application/clients/client-secrets.ts';
import { CreateClient, DeleteClient, GetClient, ListClients, UpdateClient } from '../../../application/clients/clients.ts';
import {
  assertMayGrant,
  assertMayUse,
  type Client,
  ClientCreation,
  ClientUpdate,
  isRestricted,
  isSecretCurrent,
  mayUse,
  withSecret,
} from '../../../domain/clients/client.ts';
import { assertNoForeignIdentifiers, type IdentifiedConfiguration } from '../../../domain/clients/foreign-identifiers.ts';
import { Role } from '../../../domain/clients/role.ts';
import { isServiceName } from '../../../domain/clients/service-names.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { assertCountQuota, assertSizeQuota, isCountedKind, isSizedKind } from '../../../domain/tenants/quotas.ts';
import { effectiveStatusListConfig } from '../../../domain/tenants/tenant.ts';
import { ACME, type AdministrationWorld, anAdministration, aWorld, codeOf, MANAGER, outcomeOf, type World } from '../administrators.ts';

const clientCreation = (fields: object = {}) => ClientCreation.parse({ clientId: 'shop', roles: ['presentation:request'], ...fields });

describe('The clients of a tenant', () => {
  let world: World;
  const admin = (restrictions = {}) => world.caller(['clients:manage', 'presentation:request', 'issuance:offer'], restrictions);
  const storedShop = () => world.store.forTenant(ACME, ({ clients }) => clients.get('shop'));

  beforeEach(async () => {
    world = aWorld();
    await world.createTenant();
  });

  it('store a secret that can be fetched once, and its hash', async () => {
    await new CreateClient(world).execute(admin(), clientCreation());
    const secret = await new PickUpSecret(world).execute(admin(), 'shop');
    expect(Buffer.from(secret, 'base64url')).to.have.length(32);
    const client = await storedShop();
    expect(await world.secrets.verify(secret, client.secretHash)).to.equal(true);
    expect(client.pickUp).to.equal(null);
    expect(await codeOf(new PickUpSecret(world).execute(admin(), 'shop'))).to.equal('gone');
  });

  it('return a given secret as well', async () => {
    await new CreateClient(world).execute(admin(), clientCreation({ secret: 'sixteen-or-more-chars' }));
    expect(await new PickUpSecret(world).execute(admin(), 'shop')).to.equal('sixteen-or-more-chars');
  });

  it('return the secret to one of several concurrent callers', async () => {
    await new CreateClient(world).execute(admin(), clientCreation());
    const pickUps = Array.from({ length: 8 }, () => codeOf(new PickUpSecret(world).execute(admin(), 'shop')));
    const codes = await Promise.all(pickUps);
    expect(codes.filter((code) => code === undefined)).to.have.length(1);
    expect(codes.filter((code) => code === 'gone')).to.have.length(7);
  });

  it('erase a secret that was not retrieved in time', async () => {
    await new CreateClient(world).execute(admin(), clientCreation());
    world.clock.forward(10 * 60_000);
    expect(await codeOf(new PickUpSecret(world).execute(admin(), 'shop'))).to.equal('gone');
    expect((await storedShop()).pickUp).to.equal(null);
  });

  it('return a secret only to a caller with the role that created it', async () => {
    await new CreateClient(world).execute(admin(), clientCreation());
    expect(await codeOf(new PickUpSecret(world).execute(MANAGER, 'shop'))).to.equal('forbidden');
  });

  it('get a new secret by rotation, and none to retrieve', async () => {
    await new CreateClient(world).execute(admin(), clientCreation());
    const before = await storedShop();
    const secret = await new RotateSecret(world).execute(MANAGER, 'shop');
    const after = await storedShop();
    expect(after.secretHash).to.not.equal(before.secretHash);
    expect(await world.secrets.verify(secret, after.secretHash)).to.equal(true);
    expect(await codeOf(new PickUpSecret(world).execute(admin(), 'shop'))).to.equal('gone');
  });

  it('cannot have existing names', async () => {
    const create = new CreateClient(world);
    expect(await codeOf(create.execute(admin(), clientCreation({ clientId: 'root' })))).to.equal('conflict');
    await create.execute(admin(), clientCreation());
    expect(await codeOf(create.execute(admin(), clientCreation()))).to.equal('conflict');
  });

  it('get no role that their creator lacks, neither initially nor later', async () => {
    const create = new CreateClient(world);
    expect(await codeOf(create.execute(admin(), clientCreation({ roles: ['registrar:manage'] })))).to.equal('forbidden');
    expect(await codeOf(create.execute(admin(), clientCreation({ roles: ['tenants:manage'] })))).to.equal('invalid_input');
    await create.execute(admin(), clientCreation());
    const update = new UpdateClient(world);
    expect(await codeOf(update.execute(admin(), 'shop', { roles: ['registrar:manage'] }))).to.equal('forbidden');
    // A caller that lacks a role may update a client that already has it.
    const otherCaller = world.caller(['clients:manage', 'presentation:request']);
    const updated = await update.execute(otherCaller, 'shop', { roles: ['presentation:request'], description: 'Till' });
    expect(updated).to.include({ description: 'Till' });
  });

  it('are not changed or deleted by a caller that may not have their secret', async () => {
    const roles = ['presentation:request'] as const;
    await new CreateClient(world).execute(admin(), clientCreation({ allowedIssuanceConfigs: ['pid', 'mdl'] }));
    const update = new UpdateClient(world);
    const remove = new DeleteClient(world);
    const callers = [
      world.caller(['clients:manage']),
      world.caller(['clients:manage', 'issuance:offer']),
      admin({ allowedIssuanceConfigs: ['pid'] }),
    ];
    for (const caller of callers) {
      for (const change of [{ description: 'Mine' }, { allowedIssuanceConfigs: ['pid'] }, { allowedIssuanceConfigs: ['nothing'] }]) {
        expect(await codeOf(update.execute(caller, 'shop', { roles: [...roles], ...change }))).to.equal('forbidden');
      }
      expect(await codeOf(update.execute(caller, 'shop', { roles: ['clients:manage'] }))).to.equal('forbidden');
      expect(await codeOf(remove.execute(caller, 'shop'))).to.equal('forbidden');
    }
    expect((await storedShop()).allowedIssuanceConfigs).to.deep.equal(['pid', 'mdl']);
    await remove.execute(admin({ allowedIssuanceConfigs: ['mdl', 'pid', 'more'] }), 'shop');
  });

  it('get no configuration that a restricted creator lacks', async () => {
    const restricted = admin({ allowedIssuanceConfigs: ['pid'] });
    const create = new CreateClient(world);
    for (const allowedIssuanceConfigs of [null, [], ['pid', 'diploma']]) {
      expect(await codeOf(create.execute(restricted, clientCreation({ allowedIssuanceConfigs })))).to.equal('forbidden');
    }
    await create.execute(restricted, clientCreation({ allowedIssuanceConfigs: ['pid'] }));
    const update = new UpdateClient(world);
    const roles = ['presentation:request'] as const;
    const liftRestriction = update.execute(restricted, 'shop', { roles: [...roles], allowedIssuanceConfigs: null });
    expect(await codeOf(liftRestriction)).to.equal('forbidden');
    const updated = await update.execute(restricted, 'shop', { roles: [...roles] });
    expect(updated.allowedIssuanceConfigs).to.deep.equal(['pid']);
  });
});

const NOW = new Date('2026-06-01T12:00:00Z');
const nowPlus = (seconds: number) => new Date(NOW.getTime() + seconds * 1000);

const resultOf = (work: () => void) => {
  try {
    work();
    return 'done';
  } catch (error) {
    if (error instanceof Failure) return error.code;
    throw error;
  }
};

describe('client secret', () => {
  const client = { secretRevision: 4, formerSecretUntil: null, pickUp: {} } as unknown as Client;

  it('ends the tokens of the previous secret, at once or after the requested overlap', () => {
    const { secretRevision, formerSecretUntil, pickUp } = withSecret(client, 'h', NOW);
    expect([secretRevision, formerSecretUntil, pickUp]).to.deep.equal([5, null, null]);
    expect(withSecret(client, 'h', NOW, 60).formerSecretUntil).to.deep.equal(nowPlus(60));
  });

  it('is valid with its revision, and the previous one during its grace period', () => {
    const inGracePeriod = { secretRevision: 5, formerSecretUntil: nowPlus(60) };
    const isCurrent = (revision: number, secret = inGracePeriod as Parameters<typeof isSecretCurrent>[0], now = NOW) =>
      isSecretCurrent(secret, revision, now);
    expect([isCurrent(5), isCurrent(4)]).to.deep.equal([true, true]);
    expect([isCurrent(3), isCurrent(6), isCurrent(4, inGracePeriod, nowPlus(60))]).to.deep.equal(Array(3).fill(false));
    expect(isCurrent(4, { ...inGracePeriod, formerSecretUntil: null })).to.equal(false);
  });
});

describe('client permission', () => {
  it('is granted only by a client that has the right itself, and never across tenants', () => {
    const grant = (granted: Role[], granter: Role[]) => resultOf(() => assertMayGrant(granted, granter));
    expect(grant(['issuance:offer'], ['issuance:offer', 'clients:manage'])).to.equal('done');
    expect(grant(['issuance:manage'], ['issuance:offer'])).to.equal('forbidden');
    expect(grant(['tenants:manage'], ['tenants:manage'])).to.equal('invalid_input');
    expect(Role.parse('presentation:offer')).to.equal('presentation:request');
    expect(Role.parse('issuance:offer')).to.equal('issuance:offer');
  });

  it('covers all configurations without a list', () => {
    const restricted = (presentations: string[] | null, issuances: string[] | null) =>
      isRestricted({ allowedPresentationConfigs: presentations, allowedIssuanceConfigs: issuances });
    expect([restricted(null, null), restricted([], []), restricted(['a'], null), restricted(null, ['a'])]).to.deep.equal([
      ...[false, false, true, true],
    ]);
    expect([mayUse(null, 'a'), mayUse([], 'a'), mayUse(['a'], 'a'), mayUse(['b'], 'a')]).to.deep.equal([...[true, true, true, false]]);
    expect(resultOf(() => assertMayUse(['a', 'b'], ['a', 'b']))).to.equal('done');
    expect(resultOf(() => assertMayUse(['a'], ['a', 'b']))).to.equal('forbidden');
  });

  const configuration = (id: string, ...names: string[]): IdentifiedConfiguration => ({ id, names: { vct: names } });
  const otherConfigurations = [configuration('a', 'urn:a'), configuration('b', 'urn:b'), configuration('hidden', 'urn:hidden')];
  const write = (allowed: string[] | null, change: IdentifiedConfiguration, before?: IdentifiedConfiguration) =>
    resultOf(() => assertNoForeignIdentifiers(allowed, change, before, otherConfigurations));

  it('covers no other configuration with a similar name', () => {
    expect(write(['a'], configuration('a', 'urn:hidden'))).to.equal('forbidden');
    expect(write(['a'], configuration('a', 'urn:new', 'urn:b'))).to.equal('forbidden');
    expect(write(['a', 'b'], configuration('a', 'urn:b')), 'a name of another allowed configuration').to.equal('done');
    expect(write(['a'], configuration('a', 'urn:new'))).to.equal('done');
    expect(write(['a'], configuration('a', 'urn:a')), 'its own name').to.equal('done');
    expect(write(['a'], configuration('hidden', 'urn:hidden')), 'the name in that configuration itself').to.equal('done');
    expect(write(['a'], configuration('a', 'urn:b'), configuration('a', 'urn:b')), 'its previous name').to.equal('done');
    for (const unrestricted of [null, []]) expect(write(unrestricted, configuration('a', 'urn:hidden'))).to.equal('done');
  });

  it('does not allow a client to act as the service', () => {
    for (const name of ['folder import', ' Folder  IMPORT ']) expect(isServiceName(name)).to.equal(true);
    expect(isServiceName('folder-import')).to.equal(false);
  });
});

describe('tenant limits', () => {
  const quotas = {
    ...{ 'credential-configuration': 2, 'presentation-configuration': 2, 'key-chain': 2, client: 2 },
    bytes: 100,
    sessionBytes: 100,
  };

  it('count objects up to the quotas', () => {
    expect([2, 3].map((count) => resultOf(() => assertCountQuota('client', count, quotas)))).to.deep.equal([...['done', 'conflict']]);
    expect([100, 101].map((bytes) => resultOf(() => assertSizeQuota(bytes, quotas)))).to.deep.equal([...['done', 'conflict']]);
    expect([isCountedKind('client'), isCountedKind('toString')]).to.deep.equal([true, false]);
    expect([isSizedKind('issuance-configuration'), isSizedKind('client')]).to.deep.equal([true, false]);
  });

  it('create status lists with the configured parameters, or the default ones', () => {
    const defaults = { capacity: 1000, bits: 1, ttl: 3600 } as const;
    expect(effectiveStatusListConfig(null, defaults)).to.deep.equal({
      ...{ ...defaults, immediateUpdate: false, enableAggregation: true },
    });
    const statusConfig = { capacity: 200, bits: 2, ttl: 60, immediateUpdate: true, enableAggregation: false } as const;
    expect(effectiveStatusListConfig(statusConfig, defaults)).to.deep.equal(statusConfig);
  });
});

const OFFER_ROLE = { roles: ['issuance:offer'] };

describe('client list of a tenant', () => {
  let world: AdministrationWorld;
  const admin = () => world.caller(['clients:manage', 'issuance:offer', 'issuance:manage']);
  const otherTenant = () => ({ ...admin(), tenantId: 'other' as TenantId });
  const create = (clientId: string, fields: object = {}, by = admin()) =>
    new CreateClient(world).execute(by, ClientCreation.parse({ clientId, ...OFFER_ROLE, ...fields }));
  const update = (clientId: string, changes: object, by = admin()) =>
    new UpdateClient(world).execute(by, clientId, ClientUpdate.parse({ ...OFFER_ROLE, ...changes }));
  const get = (clientId: string, by = admin()) => new GetClient(world).execute(by, clientId);
  const remove = (clientId: string, by = admin()) => new DeleteClient(world).execute(by, clientId);
  const ids = async () => (await new ListClients(world).execute(admin())).map(({ clientId }) => clientId);

  beforeEach(async () => {
    world = await anAdministration();
    await world.store.prepare('the shop', () => create('shop', { description: 'The shop' }));
    await world.addOtherTenant('other');
  });

  it('is in order of the ids, and is that of one tenant', async () => {
    await create('a-first');
    await create('theirs', {}, otherTenant());
    expect(await ids()).to.deep.equal(['a-first', 'shop']);
  });

  it('has the given properties, with each role once, and defaults for others', async () => {
    await create('twice', { roles: ['issuance:offer', 'issuance:offer'] });
    expect(await get('twice')).to.deep.include({
      ...{ tenantId: ACME, description: null, roles: ['issuance:offer'] },
      ...{ allowedPresentationConfigs: null, allowedIssuanceConfigs: null },
    });
    expect(await get('shop')).to.include({ description: 'The shop' });
  });

  it('changes the given properties, and resets those that are null', async () => {
    world.clock.forward(1_000);
    const changed = await update('shop', { roles: ['issuance:manage'], allowedIssuanceConfigs: ['pid'] });
    expect(changed).to.deep.include({
      ...{ roles: ['issuance:manage'], allowedIssuanceConfigs: ['pid'], description: 'The shop' },
      updatedAt: world.clock.now(),
    });
    const { findings, ...storedShop } = changed;
    expect(await get('shop')).to.deep.equal(storedShop);
    expect(findings?.[0]?.message, 'no configuration has this id').to.include('"pid"');
    const reset = await update('shop', { description: null, allowedIssuanceConfigs: null });
    expect(reset).to.include({ description: null, allowedIssuanceConfigs: null });
  });

  it('loses a client once, and its name is free again', async () => {
    await remove('shop');
    expect(await ids()).to.deep.equal([]);
    expect(await outcomeOf(remove('shop'))).to.equal('not_found');
    await create('shop');
    expect(await get('shop')).to.include({ description: null });
  });

  const rejections: [string, () => Promise<unknown>, string][] = [
    ['an existing id', () => create('shop'), 'conflict'],
    ['an id of another tenant', () => create('shop', {}, otherTenant()), 'conflict'],
    ['the id of the root client', () => create('root'), 'conflict'],
    ["the name of another tenant's administrator", () => create('beta-admin'), 'invalid_input clientId'],
    ['a role that the creator lacks', () => create('more', { roles: ['registrar:manage'] }), 'forbidden'],
    ['the role that manages tenants', () => create('more', { roles: ['tenants:manage'] }), 'invalid_input roles'],
    ['a read of an unknown tenant', () => get('unknown'), 'not_found'],
    ["a read of another tenant's client", () => get('shop', otherTenant()), 'not_found'],
    ['a change of an unknown tenant', () => update('unknown', {}), 'not_found'],
    ["a change of another tenant's client", () => update('shop', {}, otherTenant()), 'not_found'],
    ['a change to a role that the changer lacks', () => update('shop', { roles: ['registrar:manage'] }), 'forbidden'],
    ['a change to the role that manages tenants', () => update('shop', { roles: ['tenants:manage'] }), 'invalid_input roles'],
    ['the removal of an unknown tenant', () => remove('unknown'), 'not_found'],
    ["the removal of another tenant's client", () => remove('shop', otherTenant()), 'not_found'],
  ];
  for (const [description, attempt, outcome] of rejections) {
    it(`rejects ${description}: ${outcome}`, async () => {
      const before = await ids();
      expect(await outcomeOf(attempt())).to.equal(outcome);
      expect(await ids()).to.deep.equal(before);
    });
  }

  const documents: [string, object, string][] = [
    ['an id with spaces', { clientId: 'a b' }, 'clientId'],
    ['no id', { clientId: undefined }, 'clientId'],
    ['no roles', { roles: [] }, 'roles'],
    ['missing roles', { roles: undefined }, 'roles'],
    ['an unknown role', { roles: ['everything'] }, 'roles.0'],
    ['a short secret', { secret: 'short' }, 'secret'],
    ['a restriction that is not a list', { allowedIssuanceConfigs: 'pid' }, 'allowedIssuanceConfigs'],
  ];
  for (const [description, change, path] of documents) {
    it(`rejects a client with ${description}`, () => {
      const { error } = ClientCreation.safeParse({ clientId: 'fine', ...OFFER_ROLE, ...change });
      expect(error?.issues.map((issue) => issue.path.join('.'))).to.deep.equal([path]);
    });
  }
});
