import { expect } from 'chai';
import type { ChainedWallet } from '../support/chained-wallet.ts';
import { ChainedWorld } from '../support/chained-world.ts';
import { CONFIDENTIAL } from '../support/upstream-provider.ts';

for (const form of ['json', 'jwt'] as const) {
  describe(`A provider whose ID tokens have no claims of scopes, and whose userinfo is ${form}`, () => {
    let world: ChainedWorld;
    let wallet: ChainedWallet;
    let token: string;
    before(async () => {
      world = await ChainedWorld.start(['acme'], form);
      const upstream = { issuer: world.provider.issuer, ...CONFIDENTIAL };
      ({ token, wallet } = await world.openTenant('acme', { upstream }));
    });
    after(() => world.close());

    const identity = async () => {
      const redeemed = await wallet.redeemCode(await wallet.chainedCode(world.provider, { scope: 'badge' }));
      expect(redeemed.status, redeemed.text).to.equal(200);
      await wallet.request(redeemed.body.access_token, 'badge');
      return world.backend.at('/claims').at(-1)?.body.identity;
    };

    it('tells the backend the name of who logged in', async () => {
      const { iss, sub, token_claims } = await identity();
      expect([iss, sub]).to.deep.equal([world.provider.issuer, 'alice']);
      expect(token_claims).to.include({
        given_name: 'Alice',
        family_name: 'Adams',
        aud: CONFIDENTIAL.clientId,
      });
      expect(token_claims).to.have.property('nonce');
      expect(world.provider.hits('/me')).to.equal(1);
    });

    it('is not asked where that is switched off', async () => {
      const upstream = { issuer: world.provider.issuer, ...CONFIDENTIAL, userinfo: false };
      await world.configure(token, { upstream });
      expect((await identity()).token_claims).not.to.have.any.keys('given_name', 'family_name');
      expect(world.provider.hits('/me')).to.equal(1);
    });
  });
}

describe('A provider whose access tokens are for something else than its userinfo', () => {
  it('lets nobody in until userinfo is switched off', async () => {
    const world = await ChainedWorld.start(['acme']);
    try {
      const upstream = { issuer: world.provider.issuer, ...CONFIDENTIAL };
      const { token, wallet } = await world.openTenant('acme', { upstream });
      const ended = await wallet
        .chainedCode(world.provider, { scope: 'badge' })
        .catch((error: Error) => error);
      expect(String(ended)).to.include('server_error');
      await world.configure(token, { upstream: { ...upstream, userinfo: false } });
      expect(await wallet.chainedCode(world.provider, { scope: 'badge' })).to.be.a('string');
    } finally {
      await world.close();
    }
  });
});
