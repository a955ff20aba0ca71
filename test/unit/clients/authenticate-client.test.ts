import { expect } from 'chai';
import sinon from 'sinon';
import type { AuthenticateClient } from '../../../application/clients/authenticate-client.ts';
import type { Role } from '../../../domain/clients/role.ts';
import { Failure, type FailureCode } from '../../../domain/shared/failure.ts';
import { ACME, codeOf } from '../administration/world.ts';
import { aClientWorld, type ClientWorld, ROOT_SECRET } from './kit.ts';

describe('AuthenticateClient', () => {
  let world: ClientWorld;

  before(async () => {
    world = await aClientWorld();
  });
  afterEach(() => sinon.restore());

  type Refused = readonly [what: string, code: FailureCode, token: () => string | undefined];
  const refusals: readonly Refused[] = [
    ['no token', 'unauthenticated', () => undefined],
    ['a token of nobody', 'unauthenticated', () => 'a.b.c'],
    ['a token with another signature', 'unauthenticated', () => `${world.tokenOf().slice(0, -4)}AAAA`],
    ['a token of a tenant that is gone', 'unauthenticated', () => world.tokenOf({ subject: 'gone' })],
    ['a token of a client that is gone', 'unauthenticated', () => world.tokenOf({ clientId: 'gone' })],
    [
      'a token of a client that was made anew under its name',
      'unauthenticated',
      () => world.tokenOf({ clientSince: world.since.getTime() - 1 }),
    ],
    [
      'a client that calls itself like its tenant',
      'unauthenticated',
      () => world.tokenOf({ clientId: ACME, roles: ['tenants:manage'] }),
    ],
  ];
  for (const [what, code, token] of refusals) {
    it(`refuses ${what}`, async () => {
      expect(await codeOf(world.authenticate.execute(token()))).to.equal(code);
      expect(await codeOf(world.authenticate.remembered(token(), () => {}))).to.equal(code);
    });
  }

  it('refuses a token whose time is over', async () => {
    const token = world.tokenOf();
    world.clock.forward(3600_000);
    expect(await codeOf(world.authenticate.execute(token))).to.equal('unauthenticated');
    world.clock.forward(-3600_000);
    expect(await codeOf(world.authenticate.execute(token))).to.equal(undefined);
  });

  it('refuses a token that was good a moment ago once its time is over, or with another ending', async () => {
    const token = world.tokenOf();
    await world.authenticate.execute(token);
    expect(await codeOf(world.authenticate.execute(`${token.slice(0, -4)}AAAA`))).to.equal('unauthenticated');
    expect(await codeOf(world.authenticate.execute(`${token}.`))).to.equal('unauthenticated');
    world.clock.forward(3_600_000);
    expect(await codeOf(world.authenticate.execute(token))).to.equal('unauthenticated');
    world.clock.forward(-3_600_000);
  });

  it('is forbidden for a tenant that is suspended', async () => {
    await world.suspend('suspended');
    expect(await codeOf(world.authenticate.execute(world.tokenOf()))).to.equal('forbidden');
    await world.suspend('active');
  });

  it('gives the rights of this moment, not those of the token', async () => {
    await world.change(['issuance:manage']);
    const caller = await world.authenticate.execute(world.tokenOf());
    expect(caller).to.deep.include({ roles: ['issuance:manage'], allowedIssuanceConfigs: ['card'] });
    await world.change(['issuance:offer']);
  });

  describe('as remembered', () => {
    const admit = () => {};
    const remembered = async (judge: Parameters<AuthenticateClient['remembered']>[1] = admit) => {
      const caller = await world.authenticate.remembered(world.tokenOf(), judge);
      if (caller.tenantId === null) throw new Error('no client of a tenant');
      return caller;
    };
    beforeEach(() => world.authenticate.execute(world.tokenOf()));

    it('reads nothing', async () => {
      const read = sinon.spy(world.store, 'read');
      expect(await remembered()).to.deep.include({ tenantId: ACME, roles: ['issuance:offer'] });
      expect(read.callCount).to.equal(0);
    });

    it('may be out of date, and is judged anew by what is stored', async () => {
      await world.change(['issuance:manage']);
      const caller = await remembered();
      expect(caller.roles).to.deep.equal(['issuance:offer']);
      const state = await world.store.read(ACME).state();
      if (state === undefined) throw new Error('no tenant');
      const again = await caller.again(world.tenantConfigurations.of(state));
      expect(again.roles).to.deep.equal(['issuance:manage']);
      await world.change(['issuance:offer']);
    });

    it('is refused by nothing but what is stored', async () => {
      await world.change(['issuance:manage']);
      const needs = (role: Role) => (caller: { readonly roles: readonly Role[] }) => {
        if (!caller.roles.includes(role)) throw new Failure('forbidden', `needs ${role}`);
      };
      expect((await remembered(needs('issuance:manage'))).roles).to.deep.equal(['issuance:manage']);
      expect(await codeOf(remembered(needs('issuance:offer')))).to.equal('forbidden');
      await world.change(['issuance:offer']);
    });

    it('is asked about each time, also when it is judged anew', async () => {
      const judge = sinon.spy();
      const caller = await remembered(judge);
      await caller.again(caller.remembered);
      expect(judge.callCount).to.equal(2);
    });

    it('is read where this process knows nothing of the tenant', async () => {
      world.eventBus.publish({ type: 'tenant', tenantId: ACME });
      expect((await remembered()).clientId).to.equal('shop');
    });

    it('is the account of the service itself, where it may call', async () => {
      const { token } = await world.issue.execute('root', ROOT_SECRET);
      expect(await world.authenticate.remembered(token, admit)).to.deep.include({ tenantId: null });
      const refuse = () => {
        throw new Failure('forbidden');
      };
      expect(await codeOf(world.authenticate.remembered(token, refuse))).to.equal('forbidden');
    });
  });

  describe('with a token of an external provider', () => {
    const external = (roles: Role[], changes: object = {}) => {
      const access = { subject: ACME as string, clientId: 'portal', roles, isExternal: true, ...changes };
      sinon.stub(world.accessTokens, 'verify').returns({ ...access, expiresAt: world.since } as never);
      return world.authenticate.execute('a token');
    };

    it('gives a client that nobody knows here what its provider says, and never the tenants', async () => {
      const caller = await external(['issuance:offer', 'tenants:manage']);
      expect(caller).to.deep.include({ roles: ['issuance:offer'], allowedIssuanceConfigs: null });
    });

    it('gives a client that is known here what both sides give it', async () => {
      const caller = await external(['issuance:offer', 'clients:manage'], { clientId: 'shop' });
      expect(caller).to.deep.include({ roles: ['issuance:offer'], allowedIssuanceConfigs: ['card'] });
    });

    it('refuses a client that was removed here', async () => {
      await world.put({ clientId: 'former' });
      await world.store.forTenant(ACME, ({ clients }) => clients.remove('former'), { by: 'system' });
      expect(await codeOf(external(['issuance:offer'], { clientId: 'former' }))).to.equal('unauthenticated');
    });

    it('takes an account that names itself for one that manages tenants, by its role', async () => {
      const same = { subject: 'portal' };
      expect(await external(['tenants:manage'], same)).to.deep.include({ tenantId: null });
      sinon.restore();
      expect(await codeOf(external(['issuance:offer'], same))).to.equal('unauthenticated');
    });
  });
});
