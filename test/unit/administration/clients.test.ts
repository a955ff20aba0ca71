import { expect } from 'chai';
import { PickUpSecret, RotateSecret } from '../../../application/clients/client-secrets.ts';
import { CreateClient, DeleteClient, UpdateClient } from '../../../application/clients/clients.ts';
import { ClientCreation } from '../../../domain/clients/client.ts';
import { ACME, aWorld, codeOf, MANAGER, type World } from './world.ts';

const wanted = (fields: object = {}) =>
  ClientCreation.parse({ clientId: 'shop', roles: ['presentation:request'], ...fields });

describe('The clients of a tenant', () => {
  let world: World;
  const admin = (restrictions = {}) =>
    world.caller(['clients:manage', 'presentation:request', 'issuance:offer'], restrictions);
  const stored = () => world.store.forTenant(ACME, ({ clients }) => clients.get('shop'));

  beforeEach(async () => {
    world = aWorld();
    await world.createTenant();
  });

  it('keep a secret that can be fetched once, and whose hash is the one stored', async () => {
    await new CreateClient(world).execute(admin(), wanted());
    const secret = await new PickUpSecret(world).execute(admin(), 'shop');
    expect(Buffer.from(secret, 'base64url')).to.have.length(32);
    const client = await stored();
    expect(await world.secrets.verify(secret, client.secretHash)).to.equal(true);
    expect(client.pickUp).to.equal(null);
    expect(await codeOf(new PickUpSecret(world).execute(admin(), 'shop'))).to.equal('gone');
  });

  it('hand a given secret over as well', async () => {
    await new CreateClient(world).execute(admin(), wanted({ secret: 'sixteen-or-more-chars' }));
    expect(await new PickUpSecret(world).execute(admin(), 'shop')).to.equal('sixteen-or-more-chars');
  });

  it('hand the secret to one of many who ask at once', async () => {
    await new CreateClient(world).execute(admin(), wanted());
    const asked = Array.from({ length: 8 }, () => codeOf(new PickUpSecret(world).execute(admin(), 'shop')));
    const codes = await Promise.all(asked);
    expect(codes.filter((code) => code === undefined)).to.have.length(1);
    expect(codes.filter((code) => code === 'gone')).to.have.length(7);
  });

  it('erase a secret that nobody fetched in time', async () => {
    await new CreateClient(world).execute(admin(), wanted());
    world.clock.forward(10 * 60_000);
    expect(await codeOf(new PickUpSecret(world).execute(admin(), 'shop'))).to.equal('gone');
    expect((await stored()).pickUp).to.equal(null);
  });

  it('show a secret only to the role that made it', async () => {
    await new CreateClient(world).execute(admin(), wanted());
    expect(await codeOf(new PickUpSecret(world).execute(MANAGER, 'shop'))).to.equal('forbidden');
  });

  it('get a new secret by rotation, which leaves none to fetch', async () => {
    await new CreateClient(world).execute(admin(), wanted());
    const before = await stored();
    const secret = await new RotateSecret(world).execute(MANAGER, 'shop');
    const after = await stored();
    expect(after.secretHash).to.not.equal(before.secretHash);
    expect(await world.secrets.verify(secret, after.secretHash)).to.equal(true);
    expect(await codeOf(new PickUpSecret(world).execute(admin(), 'shop'))).to.equal('gone');
  });

  it('cannot take the names that are taken', async () => {
    const create = new CreateClient(world);
    expect(await codeOf(create.execute(admin(), wanted({ clientId: 'root' })))).to.equal('conflict');
    await create.execute(admin(), wanted());
    expect(await codeOf(create.execute(admin(), wanted()))).to.equal('conflict');
  });

  it('are given no role that their maker lacks, neither at first nor later', async () => {
    const create = new CreateClient(world);
    expect(await codeOf(create.execute(admin(), wanted({ roles: ['registrar:manage'] })))).to.equal(
      'forbidden',
    );
    expect(await codeOf(create.execute(admin(), wanted({ roles: ['tenants:manage'] })))).to.equal(
      'invalid_input',
    );
    await create.execute(admin(), wanted());
    const update = new UpdateClient(world);
    expect(await codeOf(update.execute(admin(), 'shop', { roles: ['registrar:manage'] }))).to.equal(
      'forbidden',
    );
    // A role that is there already is kept, by whoever holds the others.
    const lesser = world.caller(['clients:manage', 'presentation:request']);
    const kept = await update.execute(lesser, 'shop', {
      roles: ['presentation:request'],
      description: 'Till',
    });
    expect(kept).to.include({ description: 'Till' });
  });

  it('are not changed or deleted by who may not hold their secret', async () => {
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
      for (const change of [
        { description: 'Mine' },
        { allowedIssuanceConfigs: ['pid'] },
        { allowedIssuanceConfigs: ['nothing'] },
      ]) {
        expect(await codeOf(update.execute(caller, 'shop', { roles: [...roles], ...change }))).to.equal(
          'forbidden',
        );
      }
      expect(await codeOf(update.execute(caller, 'shop', { roles: ['clients:manage'] }))).to.equal(
        'forbidden',
      );
      expect(await codeOf(remove.execute(caller, 'shop'))).to.equal('forbidden');
    }
    expect((await stored()).allowedIssuanceConfigs).to.deep.equal(['pid', 'mdl']);
    await remove.execute(admin({ allowedIssuanceConfigs: ['mdl', 'pid', 'more'] }), 'shop');
  });

  it('are given no configuration that a restricted maker lacks', async () => {
    const restricted = admin({ allowedIssuanceConfigs: ['pid'] });
    const create = new CreateClient(world);
    for (const allowedIssuanceConfigs of [null, [], ['pid', 'diploma']]) {
      expect(await codeOf(create.execute(restricted, wanted({ allowedIssuanceConfigs })))).to.equal(
        'forbidden',
      );
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
