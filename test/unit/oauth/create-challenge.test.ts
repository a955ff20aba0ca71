import { expect } from 'chai';
import sinon from 'sinon';
import { acceptsChallenge } from '../../../application/oauth/challenges.ts';
import { CreateChallenge } from '../../../application/oauth/create-challenge.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { UPSTREAM } from '../../support/fake-authorization-servers.ts';
import { ACME, PUBLIC_URL } from '../verification-flow/kit.ts';
import { endOf, WalletWorld } from '../wallet-kit.ts';

const ISSUER = `${PUBLIC_URL}/acme`;

describe('CreateChallenge', () => {
  let world: WalletWorld;

  before(async () => {
    world = await WalletWorld.open();
    await world.issues({ chainedAs: { upstream: { issuer: UPSTREAM, clientId: 'vidimus' } } });
  });
  afterEach(() => sinon.restore());

  it('makes challenges of one server, for five minutes, and writes nothing', async () => {
    const commit = sinon.spy(world.store, 'commit');
    for (const [server, issuer, other] of [
      ['built-in', ISSUER, `${ISSUER}/chained-as`],
      ['chained', `${ISSUER}/chained-as`, ISSUER],
    ] as const) {
      const challenge = await world.createChallenge.execute(ACME, server);
      const accepts = (at: string, seconds = 0) =>
        acceptsChallenge(world.settings, ACME, at, challenge, new Date(world.clock.time + seconds * 1000));
      expect([accepts(issuer), accepts(issuer, 299), accepts(issuer, 300), accepts(other)]).to.deep.equal([
        true,
        true,
        false,
        false,
      ]);
    }
    expect(commit.callCount).to.equal(0);
  });

  it('makes none for a tenant that is unknown or suspended', async () => {
    expect(await endOf(world.createChallenge.execute('nobody' as TenantId, 'built-in'))).to.equal(
      'not_found',
    );
    await world.change({ status: 'suspended' });
    const elsewhere = new CreateChallenge(world.elsewhere());
    expect(await endOf(elsewhere.execute(ACME, 'built-in'))).to.equal('not_found');
    await world.change({ status: 'active' });
  });

  it('makes none for a chained server that is not there', async () => {
    await world.issues();
    const elsewhere = new CreateChallenge(world.elsewhere());
    expect(await endOf(elsewhere.execute(ACME, 'chained'))).to.equal('not_found');
    expect(await endOf(elsewhere.execute(ACME, 'built-in'))).to.equal('done');
  });
});
