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
import { ACME, type AdministrationWorld, anAdministration, aWorld, codeOf, endOf, MANAGER, type World } from '../administrators.ts';

const wanted = (fields: object = {}) => ClientCreation.parse({ clientId: 'shop', roles: ['presentation:request'], ...fields });

describe('The clients of a tenant', () => {
  let world: World;
  const admin = (restrictions = {}) => world.caller(['clients:manage', 'presentation:request', 'issuance:offer'], restrictions);
  const stored = () => world.store.forTenant(ACME, ({ clients }) => clients.get('shop'));

  beforeEach(async () => {
    world = aWorld();
    await world.createTenant();
  });

  it('store a secret that can be fetched once, and its hash', async () => {
    await new CreateClient(world).execute(admin(), wanted());
    const secret = await new PickUpSecret(world).execute(admin(), 'shop');
    expect(Buffer.from(secret, 'base64url')).to.have.length(32);
    const client = await stored();
    expect(await world.secrets.verify(secret, client.secretHash)).to.equal(true);
    expect(client.pickUp).to.equal(null);
    expect(await codeOf(new PickUpSecret(world).execute(admin(), 'shop'))).to.equal('gone');
  });

  it('return a given secret as well', async () => {
    await new CreateClient(world).execute(admin(), wanted({ secret: 'sixteen-or-more-chars' }));
    expect(await new PickUpSecret(world).execute(admin(), 'shop')).to.equal('sixteen-or-more-chars');
  });

  it('return the secret to one of several concurrent callers', async () => {
    await new CreateClient(world).execute(admin(), wanted());
    const asked = Array.from({ length: 8 }, () => codeOf(new PickUpSecret(world).execute(admin(), 'shop')));
    const codes = await Promise.all(asked);
    expect(codes.filter((code) => code === undefined)).to.have.length(1);
    expect(codes.filter((code) => code === 'gone')).to.have.length(7);
  });

  it('erase a secret that was not retrieved in time', async () => {
    await new CreateClient(world).execute(admin(), wanted());
    world.clock.forward(10 * 60_000);
    expect(await codeOf(new PickUpSecret(world).execute(admin(), 'shop'))).to.equal('gone');
    expect((await stored()).pickUp).to.equal(null);
  });

  it('return a secret only to a caller with the role that created it', async () => {
    await new CreateClient(world).execute(admin(), wanted());
    expect(await codeOf(new PickUpSecret(world).execute(MANAGER, 'shop'))).to.equal('forbidden');
  });

  it('get a new secret by rotation, and none to retrieve', async () => {
    await new CreateClient(world).execute(admin(), wanted());
    const before = await stored();
    const secret = await new RotateSecret(world).execute(MANAGER, 'shop');
    const after = await stored();
    expect(after.secretHash).to.not.equal(before.secretHash);
    expect(await world.secrets.verify(secret, after.secretHash)).to.equal(true);
    expect(await codeOf(new PickUpSecret(world).execute(admin(), 'shop'))).to.equal('gone');
  });

  it('cannot have existing names', async () => {
    const create = new CreateClient(world);
    expect(await codeOf(create.execute(admin(), wanted({ clientId: 'root' })))).to.equal('conflict');
    await create.execute(admin(), wanted());
    expect(await codeOf(create.execute(admin(), wanted()))).to.equal('conflict');
  });

  it('get no role that their creator lacks, neither initially nor later', async () => {
    const create = new CreateClient(world);
    expect(await codeOf(create.execute(admin(), wanted({ roles: ['registrar:manage'] })))).to.equal('forbidden');
    expect(await codeOf(create.execute(admin(), wanted({ roles: ['tenants:manage'] })))).to.equal('invalid_input');
    await create.execute(admin(), wanted());
    const update = new UpdateClient(world);
    expect(await codeOf(update.execute(admin(), 'shop', { roles: ['registrar:manage'] }))).to.equal('forbidden');
    // A role that is there already is kept, by whoever holds the others.
    const lesser = world.caller(['clients:manage', 'presentation:request']);
    const kept = await update.execute(lesser, 'shop', { roles: ['presentation:request'], description: 'Till' });
    expect(kept).to.include({ description: 'Till' });
  });

  it('are not changed or deleted by a caller that may not have their secret', async () => {
    const roles = ['presentation:request'] as const;
    await new CreateClient(world).execute(admin(), wanted({ allowedIssuanceConfigs: ['pid', 'mdl'] }));
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
    expect((await stored()).allowedIssuanceConfigs).to.deep.equal(['pid', 'mdl']);
    await remove.execute(admin({ allowedIssuanceConfigs: ['mdl', 'pid', 'more'] }), 'shop');
  });

  it('get no configuration that a restricted creator lacks', async () => {
    const restricted = admin({ allowedIssuanceConfigs: ['pid'] });
    const create = new CreateClient(world);
    for (const allowedIssuanceConfigs of [null, [], ['pid', 'diploma']]) {
      expect(await codeOf(create.execute(restricted, wanted({ allowedIssuanceConfigs })))).to.equal('forbidden');
    }
    await create.execute(restricted, wanted({ allowedIssuanceConfigs: ['pid'] }));
    const update = new UpdateClient(world);
    const roles = ['presentation:request'] as const;
    const lifting = update.execute(restricted, 'shop', { roles: [...roles], allowedIssuanceConfigs: null });
    expect(await codeOf(lifting)).to.equal('forbidden');
    const untouched = await update.execute(restricted, 'shop', { roles: [...roles] });
    expect(untouched.allowedIssuanceConfigs).to.deep.equal(['pid']);
  });
});

const NOW = new Date('2026-06-01T12:00:00Z');
const at = (seconds: number) => new Date(NOW.getTime() + seconds * 1000);

const ended = (work: () => void) => {
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
    expect(withSecret(client, 'h', NOW, 60).formerSecretUntil).to.deep.equal(at(60));
  });

  it('is valid with its revision, and the previous one during its grace period', () => {
    const graced = { secretRevision: 5, formerSecretUntil: at(60) };
    const counts = (revision: number, of = graced as Parameters<typeof isSecretCurrent>[0], now = NOW) =>
      isSecretCurrent(of, revision, now);
    expect([counts(5), counts(4)]).to.deep.equal([true, true]);
    expect([counts(3), counts(6), counts(4, graced, at(60))]).to.deep.equal(Array(3).fill(false));
    expect(counts(4, { ...graced, formerSecretUntil: null })).to.equal(false);
  });
});

describe('client permission', () => {
  it('is granted only by a client that has the right itself, and never across tenants', () => {
    const grants = (granted: Role[], granter: Role[]) => ended(() => assertMayGrant(granted, granter));
    expect(grants(['issuance:offer'], ['issuance:offer', 'clients:manage'])).to.equal('done');
    expect(grants(['issuance:manage'], ['issuance:offer'])).to.equal('forbidden');
    expect(grants(['tenants:manage'], ['tenants:manage'])).to.equal('invalid_input');
    expect(Role.parse('presentation:offer')).to.equal('presentation:request');
    expect(Role.parse('issuance:offer')).to.equal('issuance:offer');
  });

  it('covers all configurations without a list', () => {
    const lists = (presentations: string[] | null, issuances: string[] | null) =>
      isRestricted({ allowedPresentationConfigs: presentations, allowedIssuanceConfigs: issuances });
    expect([lists(null, null), lists([], []), lists(['a'], null), lists(null, ['a'])]).to.deep.equal([...[false, false, true, true]]);
    expect([mayUse(null, 'a'), mayUse([], 'a'), mayUse(['a'], 'a'), mayUse(['b'], 'a')]).to.deep.equal([...[true, true, true, false]]);
    expect(ended(() => assertMayUse(['a', 'b'], ['a', 'b']))).to.equal('done');
    expect(ended(() => assertMayUse(['a'], ['a', 'b']))).to.equal('forbidden');
  });

  const named = (id: string, ...names: string[]): IdentifiedConfiguration => ({ id, names: { vct: names } });
  const others = [named('a', 'urn:a'), named('b', 'urn:b'), named('hidden', 'urn:hidden')];
  const writes = (allowed: string[] | null, wanted: IdentifiedConfiguration, before?: IdentifiedConfiguration) =>
    ended(() => assertNoForeignIdentifiers(allowed, wanted, before, others));

  it('covers no other configuration with a similar name', () => {
    expect(writes(['a'], named('a', 'urn:hidden'))).to.equal('forbidden');
    expect(writes(['a'], named('a', 'urn:new', 'urn:b'))).to.equal('forbidden');
    expect(writes(['a', 'b'], named('a', 'urn:b')), 'one that it may use as well').to.equal('done');
    expect(writes(['a'], named('a', 'urn:new'))).to.equal('done');
    expect(writes(['a'], named('a', 'urn:a')), 'what it has').to.equal('done');
    expect(writes(['a'], named('hidden', 'urn:hidden')), 'what the other itself has').to.equal('done');
    expect(writes(['a'], named('a', 'urn:b'), named('a', 'urn:b')), 'what it had').to.equal('done');
    for (const all of [null, []]) expect(writes(all, named('a', 'urn:hidden'))).to.equal('done');
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
    expect([2, 3].map((count) => ended(() => assertCountQuota('client', count, quotas)))).to.deep.equal([...['done', 'conflict']]);
    expect([100, 101].map((bytes) => ended(() => assertSizeQuota(bytes, quotas)))).to.deep.equal([...['done', 'conflict']]);
    expect([isCountedKind('client'), isCountedKind('toString')]).to.deep.equal([true, false]);
    expect([isSizedKind('issuance-configuration'), isSizedKind('client')]).to.deep.equal([true, false]);
  });

  it('create status lists with the configured parameters, or the default ones', () => {
    const defaults = { capacity: 1000, bits: 1, ttl: 3600 } as const;
    expect(effectiveStatusListConfig(null, defaults)).to.deep.equal({
      ...{ ...defaults, immediateUpdate: false, enableAggregation: true },
    });
    const wish = { capacity: 200, bits: 2, ttl: 60, immediateUpdate: true, enableAggregation: false } as const;
    expect(effectiveStatusListConfig(wish, defaults)).to.deep.equal(wish);
  });
});

const OFFERS = { roles: ['issuance:offer'] };

describe('client list of a tenant', () => {
  let world: AdministrationWorld;
  const admin = () => world.caller(['clients:manage', 'issuance:offer', 'issuance:manage']);
  const elsewhere = () => ({ ...admin(), tenantId: 'other' as TenantId });
  const create = (clientId: string, more: object = {}, by = admin()) =>
    new CreateClient(world).execute(by, ClientCreation.parse({ clientId, ...OFFERS, ...more }));
  const update = (clientId: string, changes: object, by = admin()) =>
    new UpdateClient(world).execute(by, clientId, ClientUpdate.parse({ ...OFFERS, ...changes }));
  const get = (clientId: string, by = admin()) => new GetClient(world).execute(by, clientId);
  const remove = (clientId: string, by = admin()) => new DeleteClient(world).execute(by, clientId);
  const ids = async () => (await new ListClients(world).execute(admin())).map(({ clientId }) => clientId);

  beforeEach(async () => {
    world = await anAdministration();
    await world.store.prepare('the shop', () => create('shop', { description: 'The shop' }));
    await world.hasStranger('other');
  });

  it('is in order of the ids, and is that of one tenant', async () => {
    await create('a-first');
    await create('theirs', {}, elsewhere());
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
    const { findings, ...stored } = changed;
    expect(await get('shop')).to.deep.equal(stored);
    expect(findings?.[0]?.message, 'nothing is called so').to.include('"pid"');
    const reset = await update('shop', { description: null, allowedIssuanceConfigs: null });
    expect(reset).to.include({ description: null, allowedIssuanceConfigs: null });
  });

  it('loses a client once, and its name is free again', async () => {
    await remove('shop');
    expect(await ids()).to.deep.equal([]);
    expect(await endOf(remove('shop'))).to.equal('not_found');
    await create('shop');
    expect(await get('shop')).to.include({ description: null });
  });

  const refusals: [string, () => Promise<unknown>, string][] = [
    ['an id that is taken', () => create('shop'), 'conflict'],
    ['an id that another tenant has', () => create('shop', {}, elsewhere()), 'conflict'],
    ['the id of the root client', () => create('root'), 'conflict'],
    ["the name of another tenant's administrator", () => create('beta-admin'), 'invalid_input clientId'],
    ['a role that the maker lacks', () => create('more', { roles: ['registrar:manage'] }), 'forbidden'],
    ['the role that manages tenants', () => create('more', { roles: ['tenants:manage'] }), 'invalid_input roles'],
    ['a read of an unknown tenant', () => get('nobody'), 'not_found'],
    ["a read of another tenant's client", () => get('shop', elsewhere()), 'not_found'],
    ['a change of an unknown tenant', () => update('nobody', {}), 'not_found'],
    ["a change of another tenant's client", () => update('shop', {}, elsewhere()), 'not_found'],
    ['a change to a role that the changer lacks', () => update('shop', { roles: ['registrar:manage'] }), 'forbidden'],
    ['a change to the role that manages tenants', () => update('shop', { roles: ['tenants:manage'] }), 'invalid_input roles'],
    ['the removal of an unknown tenant', () => remove('nobody'), 'not_found'],
    ["the removal of another tenant's client", () => remove('shop', elsewhere()), 'not_found'],
  ];
  for (const [what, attempt, end] of refusals) {
    it(`rejects ${what}: ${end}`, async () => {
      const before = await ids();
      expect(await endOf(attempt())).to.equal(end);
      expect(await ids()).to.deep.equal(before);
    });
  }

  const documents: [string, object, string][] = [
    ['an id with spaces', { clientId: 'a b' }, 'clientId'],
    ['no id', { clientId: undefined }, 'clientId'],
    ['no roles', { roles: [] }, 'roles'],
    ['roles left out', { roles: undefined }, 'roles'],
    ['an unknown role', { roles: ['everything'] }, 'roles.0'],
    ['a short secret', { secret: 'short' }, 'secret'],
    ['a restriction that is not a list', { allowedIssuanceConfigs: 'pid' }, 'allowedIssuanceConfigs'],
  ];
  for (const [what, change, path] of documents) {
    it(`rejects a client with ${what}`, () => {
      const { error } = ClientCreation.safeParse({ clientId: 'fine', ...OFFERS, ...change });
      expect(error?.issues.map((issue) => issue.path.join('.'))).to.deep.equal([path]);
    });
  }
});
