import { expect } from 'chai';
import sinon from 'sinon';
import type { AuthenticateClient } from '../../../application/clients/authenticate-client.ts';
import { ConsoleTickets } from '../../../application/console/console-tickets.ts';
import { RedeemConsoleTicket } from '../../../application/console/redeem-console-ticket.ts';
import type { AccessTokens } from '../../../application/ports/access-tokens.ts';
import { parseExternalIdentity } from '../../../domain/clients/external-identity.ts';
import type { Role } from '../../../domain/clients/role.ts';
import { IMPORT_ACTOR } from '../../../domain/clients/service-names.ts';
import { Failure, type FailureCode } from '../../../domain/shared/failure.ts';
import type { Json, JsonObject } from '../../../domain/shared/json.ts';
import { ACME, codeOf } from '../administrators.ts';
import { aClientWorld, type ClientWorld, ROOT_SECRET, SHOP_SECRET } from './kit.ts';

describe('AuthenticateClient', () => {
  let world: ClientWorld;

  before(async () => {
    world = await aClientWorld();
  });
  afterEach(() => sinon.restore());

  type RejectionCase = readonly [description: string, code: FailureCode, token: () => string | undefined];
  const rejections: readonly RejectionCase[] = [
    ['no token', 'unauthenticated', () => undefined],
    ['an invalid token', 'unauthenticated', () => 'a.b.c'],
    ['a token with another signature', 'unauthenticated', () => `${world.tokenOf().slice(0, -4)}AAAA`],
    ['a token of a deleted tenant', 'unauthenticated', () => world.tokenOf({ subject: 'gone' })],
    ['a token of a deleted client', 'unauthenticated', () => world.tokenOf({ clientId: 'gone' })],
    [
      'a token of a client that was deleted and created again',
      'unauthenticated',
      () => world.tokenOf({ clientSince: world.since.getTime() - 1 }),
    ],
    ['a client with the name of its tenant', 'unauthenticated', () => world.tokenOf({ clientId: ACME, roles: ['tenants:manage'] })],
  ];
  for (const [description, code, token] of rejections) {
    it(`rejects ${description}`, async () => {
      expect(await codeOf(world.authenticate.execute(token()))).to.equal(code);
      expect(await codeOf(world.authenticate.executeCached(token(), () => {}))).to.equal(code);
    });
  }

  it('rejects an expired token', async () => {
    const token = world.tokenOf();
    world.clock.forward(3600_000);
    expect(await codeOf(world.authenticate.execute(token))).to.equal('unauthenticated');
    world.clock.forward(-3600_000);
    expect(await codeOf(world.authenticate.execute(token))).to.equal(undefined);
  });

  it('rejects a recently accepted token once it has expired, or with a changed signature', async () => {
    const token = world.tokenOf();
    await world.authenticate.execute(token);
    expect(await codeOf(world.authenticate.execute(`${token.slice(0, -4)}AAAA`))).to.equal('unauthenticated');
    expect(await codeOf(world.authenticate.execute(`${token}.`))).to.equal('unauthenticated');
    world.clock.forward(3_600_000);
    expect(await codeOf(world.authenticate.execute(token))).to.equal('unauthenticated');
    world.clock.forward(-3_600_000);
  });

  it('rejects a client of a suspended tenant', async () => {
    await world.setTenantStatus('suspended');
    expect(await codeOf(world.authenticate.execute(world.tokenOf()))).to.equal('forbidden');
    await world.setTenantStatus('active');
  });

  it('has the current rights, not those of the token', async () => {
    await world.setRoles(['issuance:manage']);
    const caller = await world.authenticate.execute(world.tokenOf());
    expect(caller).to.deep.include({ roles: ['issuance:manage'], allowedIssuanceConfigs: ['card'] });
    await world.setRoles(['issuance:offer']);
  });

  describe('with cached data', () => {
    const allowAll = () => {};
    const authenticateCached = async (assertAllowed: Parameters<AuthenticateClient['executeCached']>[1] = allowAll) => {
      const caller = await world.authenticate.executeCached(world.tokenOf(), assertAllowed);
      if (caller.tenantId === null) throw new Error('no client of a tenant');
      return caller;
    };
    beforeEach(() => world.authenticate.execute(world.tokenOf()));

    it('reads nothing from the database', async () => {
      const read = sinon.spy(world.store, 'read');
      expect(await authenticateCached()).to.deep.include({ tenantId: ACME, roles: ['issuance:offer'] });
      expect(read.callCount).to.equal(0);
    });

    it('evaluates a rejection by outdated data again with stored data', async () => {
      await world.setRoles(['issuance:manage']);
      const caller = await authenticateCached();
      expect(caller.roles).to.deep.equal(['issuance:offer']);
      const state = await world.store.read(ACME).state();
      if (state === undefined) throw new Error('no tenant');
      const reauthorized = await caller.reauthorize(world.tenantConfigurations.forState(state));
      expect(reauthorized.roles).to.deep.equal(['issuance:manage']);
      await world.setRoles(['issuance:offer']);
    });

    it('rejects only by stored data', async () => {
      await world.setRoles(['issuance:manage']);
      const requireRole = (role: Role) => (caller: { readonly roles: readonly Role[] }) => {
        if (!caller.roles.includes(role)) throw new Failure('forbidden', `needs ${role}`);
      };
      expect((await authenticateCached(requireRole('issuance:manage'))).roles).to.deep.equal(['issuance:manage']);
      expect(await codeOf(authenticateCached(requireRole('issuance:offer')))).to.equal('forbidden');
      await world.setRoles(['issuance:offer']);
    });

    it('checks the rights each time, also in a second evaluation', async () => {
      const assertAllowed = sinon.spy();
      const caller = await authenticateCached(assertAllowed);
      await caller.reauthorize(caller.cachedTenant);
      expect(assertAllowed.callCount).to.equal(2);
    });

    it('reads the tenant if it is not cached', async () => {
      world.eventBus.publish({ type: 'tenant', tenantId: ACME });
      expect((await authenticateCached()).clientId).to.equal('shop');
    });

    it('accepts the account of the service itself where it may call', async () => {
      const { token } = await world.issue.execute('root', ROOT_SECRET);
      expect(await world.authenticate.executeCached(token, allowAll)).to.deep.include({ tenantId: null });
      const rejectAll = () => {
        throw new Failure('forbidden');
      };
      expect(await codeOf(world.authenticate.executeCached(token, rejectAll))).to.equal('forbidden');
    });
  });

  describe('with a token of an external provider', () => {
    const authenticateExternal = (roles: Role[], changes: object = {}) => {
      const access = { subject: ACME as string, clientId: 'portal', roles, isExternal: true, ...changes };
      sinon.stub(world.accessTokens, 'verify').returns({ ...access, expiresAt: world.since } as never);
      return world.authenticate.execute('a token');
    };

    it('gives an unregistered client the roles of its token, but never tenants:manage', async () => {
      const caller = await authenticateExternal(['issuance:offer', 'tenants:manage']);
      expect(caller).to.deep.include({ roles: ['issuance:offer'], allowedIssuanceConfigs: null });
    });

    it('gives a registered client only rights that both sides grant', async () => {
      const caller = await authenticateExternal(['issuance:offer', 'clients:manage'], { clientId: 'shop' });
      expect(caller).to.deep.include({ roles: ['issuance:offer'], allowedIssuanceConfigs: ['card'] });
    });

    it('rejects a client that was removed from this service', async () => {
      await world.addClient({ clientId: 'former' });
      await world.store.forTenant(ACME, ({ clients }) => clients.remove('former'), { by: 'system' });
      expect(await codeOf(authenticateExternal(['issuance:offer'], { clientId: 'former' }))).to.equal('unauthenticated');
    });

    it('accepts an account with its own name as tenant administrator, by its role', async () => {
      const sameName = { subject: 'portal' };
      expect(await authenticateExternal(['tenants:manage'], sameName)).to.deep.include({ tenantId: null });
      sinon.restore();
      expect(await codeOf(authenticateExternal(['issuance:offer'], sameName))).to.equal('unauthenticated');
    });
  });
});

const RULES = { subjectClaim: 'tenant_id', actorClaim: 'sub', rolesClaim: undefined };
const clientNameOf = (client_id: string) => parseExternalIdentity({ tenant_id: 'acme', client_id }, RULES)?.clientId;

describe('client name in a token of an external provider', () => {
  it('may be any client_id of RFC 6749', () => {
    for (const name of ['shop', 'a b', 'https://shop.example/id?x=1', '~!"#', 'importer', 'x'.repeat(256)]) {
      expect(clientNameOf(name)).to.equal(name);
    }
  });

  it('has no other characters, which could break a log or a database', () => {
    for (const name of ['a\u0000b', 'a\nb', '\u007f', 'shöp', 'a\u00a0b', '\u202eshop', '', 'x'.repeat(257)]) {
      expect(clientNameOf(name), JSON.stringify(name)).to.equal(undefined);
    }
  });

  it('is not the reserved name of the configuration import, or similar to it', () => {
    for (const name of [IMPORT_ACTOR, 'Folder Import', 'folder  import', ' folder import', 'folder import ']) {
      expect(clientNameOf(name), name).to.equal(undefined);
    }
  });
});

describe('client of an external access token', () => {
  const parseClient = (claims: JsonObject, rolesClaim?: string) =>
    parseExternalIdentity({ tenant_id: 'acme', client_id: 'shop', ...claims }, { ...RULES, rolesClaim });

  it('comes from its claims, or is undefined', () => {
    expect(parseClient({})).to.deep.equal({ subject: 'acme', clientId: 'shop', roles: [] });
    const azp = parseExternalIdentity({ tenant_id: 'acme', azp: 'shop' }, RULES);
    expect(azp?.clientId, 'the claim of OpenID Connect').to.equal('shop');
    for (const claims of [{ tenant_id: 7 }, { tenant_id: '' }, { tenant_id: 'x'.repeat(257) }, { client_id: 7 }]) {
      expect(parseClient(claims)).to.equal(undefined);
    }
    expect(parseExternalIdentity({ client_id: 'shop' }, RULES)).to.equal(undefined);
    expect(parseExternalIdentity({ tenant_id: 'acme' }, RULES)).to.equal(undefined);
  });

  it('has the known roles at the configured path', () => {
    const [offer, manage] = ['issuance:offer', 'issuance:manage'];
    const roles = [offer, 'uma_protection', offer, 7, manage];
    expect(parseClient({ roles })?.roles).to.deep.equal([offer, manage]);
    expect(parseClient({ realm_access: { roles } })?.roles).to.deep.equal([offer, manage]);
    expect(parseClient({ roles: [manage], realm_access: { roles: [offer] } })?.roles).to.deep.equal([manage]);
    expect(parseClient({ roles: [manage], a: { b: [offer] } }, 'a.b')?.roles).to.deep.equal([offer]);
    expect(parseClient({ roles: [manage] }, 'a.b')?.roles, 'only from the configured path').to.deep.equal([]);
  });

  it('has no role when the claim is not a list, or an endless one', () => {
    const rolesOfLength = (count: number) => [...Array(count - 1).fill('x'), 'issuance:offer'];
    expect(parseClient({ roles: rolesOfLength(200) })?.roles).to.deep.equal(['issuance:offer']);
    for (const roles of [rolesOfLength(201), 'issuance:offer', null]) expect(parseClient({ roles })?.roles).to.deep.equal([]);
  });
});

describe('user of an external access token', () => {
  const personOf = (sub: Json, clientId = 'shop', actorClaim = 'sub') =>
    parseExternalIdentity({ tenant_id: 'acme', client_id: clientId, sub }, { ...RULES, actorClaim })?.person;

  it('is the claim of OIDC_ACTOR_CLAIM, in letters of any language', () => {
    expect(personOf('3f9c2d1e')).to.equal('3f9c2d1e');
    expect(personOf('Zoë Müller')).to.equal('Zoë Müller');
    expect(personOf('3f9c2d1e', 'shop', 'email')).to.equal(undefined);
  });

  it('is undefined for a client that calls for itself, and for a claim that is not a string', () => {
    for (const sub of ['shop', '', 7, null, ['a']]) expect(personOf(sub), JSON.stringify(sub)).to.equal(undefined);
    expect(personOf('acme', 'shop', 'tenant_id')).to.equal(undefined);
  });

  it('is a hash of a name that is too long for a log', () => {
    const names = ['a\nb', 'a\u0000b', '\u202eanna', 'x'.repeat(101), 'x'.repeat(5000)].map((name) => personOf(name));
    for (const name of names) expect(name).to.match(/^sha256:[\w-]{22}$/);
    expect(new Set(names).size).to.equal(names.length);
    expect(personOf('anna', 'x'.repeat(256))).to.equal(undefined);
  });
});

describe('IssueAccessToken', () => {
  let world: ClientWorld;

  before(async () => {
    world = await aClientWorld();
  });
  afterEach(() => sinon.restore());

  it('issues a client a token for its tenant, which authenticates it', async () => {
    const { token, expiresInSeconds } = await world.issue.execute('shop', SHOP_SECRET);
    expect(expiresInSeconds).to.equal(3600);
    const caller = await world.authenticate.execute(token);
    expect(caller).to.deep.include({ tenantId: ACME, clientId: 'shop', roles: ['issuance:offer'] });
  });

  it('issues the account of the service a token that manages tenants', async () => {
    const { token } = await world.issue.execute('root', ROOT_SECRET);
    expect(await world.authenticate.execute(token)).to.deep.equal({ tenantId: null, clientId: 'root', roles: ['tenants:manage'] });
  });

  const rejections: readonly [description: string, clientId: string, secret: string][] = [
    ['an unknown client', 'unknown', SHOP_SECRET],
    ['a wrong secret', 'shop', 'another'],
    ['no secret', 'shop', ''],
    ['a wrong secret of the root client', 'root', 'another'],
  ];
  for (const [description, clientId, secret] of rejections) {
    it(`rejects ${description}`, async () => {
      expect(await codeOf(world.issue.execute(clientId, secret))).to.equal('invalid_client');
    });
  }

  it('takes as long for an unknown client as for a wrong secret', async () => {
    const verify = sinon.spy(world.secrets, 'verify');
    await codeOf(world.issue.execute('unknown', 'a guess'));
    await codeOf(world.issue.execute('root', 'a guess'));
    expect(verify.args).to.deep.equal([
      ['a guess', '', 'unknown'],
      ['a guess', '', 'root'],
    ]);
  });

  it('rejects a client of a suspended tenant', async () => {
    await world.setTenantStatus('suspended');
    expect(await codeOf(world.issue.execute('shop', SHOP_SECRET))).to.equal('invalid_client');
    await world.setTenantStatus('active');
  });

  it('returns the error when too many secrets are being verified', async () => {
    sinon.stub(world.secrets, 'verify').rejects(new Failure('too_many_requests'));
    expect(await codeOf(world.issue.execute('shop', 'a guess'))).to.equal('too_many_requests');
  });

  it('issues no token if an external provider is configured', async () => {
    sinon.stub(world.accessTokens, 'externalIssuer').value('https://login.example');
    for (const clientId of ['shop', 'root'])
      expect(await codeOf(world.issue.execute(clientId, ROOT_SECRET))).to.equal('unauthorized_client');
  });
});

describe('console ticket', () => {
  let world: ClientWorld;
  let tickets: ConsoleTickets;
  beforeEach(async () => {
    world = await aClientWorld();
    tickets = new ConsoleTickets(world.clock, world.random);
  });

  const redeem = (ticket: string, accessTokens: AccessTokens = world.accessTokens) =>
    new RedeemConsoleTicket({ ...world, tickets, accessTokens }).execute(ticket);

  it('returns the token of the built-in client, once', async () => {
    const ticket = tickets.issue();
    const { token } = await redeem(ticket);
    const access = await world.accessTokens.verify(token);
    expect(access).to.deep.include({ clientId: 'root', subject: 'root', roles: ['tenants:manage'] });
    expect(await codeOf(redeem(ticket))).to.equal('unauthenticated');
  });

  it('is rejected if it was never issued, and after half an hour', async () => {
    expect(await codeOf(redeem('a guess'))).to.equal('unauthenticated');
    const ticket = tickets.issue();
    world.clock.forward(30 * 60_000);
    expect(await codeOf(redeem(ticket))).to.equal('unauthenticated');
  });

  it('is rejected if a provider issues tokens', async () => {
    const externalTokens = { externalIssuer: 'https://id.example' } as AccessTokens;
    expect(await codeOf(redeem(tickets.issue(), externalTokens))).to.equal('unauthenticated');
  });
});
