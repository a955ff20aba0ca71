import { expect } from 'chai';
import sinon from 'sinon';
import { Failure } from '../../../domain/shared/failure.ts';
import { ACME, codeOf } from '../administration/world.ts';
import { aClientWorld, type ClientWorld, ROOT_SECRET, SHOP_SECRET } from './kit.ts';

describe('IssueAccessToken', () => {
  let world: ClientWorld;

  before(async () => {
    world = await aClientWorld();
  });
  afterEach(() => sinon.restore());

  it('gives a client a token for its tenant, which authenticates it', async () => {
    const { token, expiresInSeconds } = await world.issue.execute('shop', SHOP_SECRET);
    expect(expiresInSeconds).to.equal(3600);
    const caller = await world.authenticate.execute(token);
    expect(caller).to.deep.include({ tenantId: ACME, clientId: 'shop', roles: ['issuance:offer'] });
  });

  it('gives the account of the service a token that manages tenants', async () => {
    const { token } = await world.issue.execute('root', ROOT_SECRET);
    expect(await world.authenticate.execute(token)).to.deep.equal({
      tenantId: null,
      clientId: 'root',
      roles: ['tenants:manage'],
    });
  });

  const refusals: readonly [what: string, clientId: string, secret: string][] = [
    ['a client of nobody', 'nobody', SHOP_SECRET],
    ['a wrong secret', 'shop', 'another'],
    ['no secret', 'shop', ''],
    ['a wrong secret of the service', 'root', 'another'],
  ];
  for (const [what, clientId, secret] of refusals) {
    it(`refuses ${what}`, async () => {
      expect(await codeOf(world.issue.execute(clientId, secret))).to.equal('invalid_client');
    });
  }

  it('takes as long for an unknown client as for a wrong secret', async () => {
    const verify = sinon.spy(world.secrets, 'verify');
    await codeOf(world.issue.execute('nobody', 'a guess'));
    await codeOf(world.issue.execute('root', 'a guess'));
    expect(verify.args).to.deep.equal([
      ['a guess', '', 'nobody'],
      ['a guess', '', 'root'],
    ]);
  });

  it('refuses a client of a tenant that is suspended', async () => {
    await world.suspend('suspended');
    expect(await codeOf(world.issue.execute('shop', SHOP_SECRET))).to.equal('invalid_client');
    await world.suspend('active');
  });

  it('passes on that too many secrets are under way', async () => {
    sinon.stub(world.secrets, 'verify').rejects(new Failure('too_many_requests'));
    expect(await codeOf(world.issue.execute('shop', 'a guess'))).to.equal('too_many_requests');
  });

  it('gives none where tokens come from somebody else', async () => {
    sinon.stub(world.accessTokens, 'issuedElsewhere').value('https://login.example');
    for (const clientId of ['shop', 'root'])
      expect(await codeOf(world.issue.execute(clientId, ROOT_SECRET))).to.equal('unauthorized_client');
  });
});
