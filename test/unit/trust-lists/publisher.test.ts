import { expect } from 'chai';
import sinon from 'sinon';
import type { SigningKey } from '../../../application/ports/kms.ts';
import { TrustListPublisher } from '../../../application/trust-lists/trust-list-publisher.ts';
import { configurationOf } from '../../../domain/trust-lists/list-configuration.ts';
import { ACME, aWorld, codeOf, type World } from '../administration/world.ts';

const ENTITIES = [
  {
    type: 'internal' as const,
    issuerKeyChainId: 'signing',
    info: { name: 'Acme', country: 'DE', streetAddress: 'Weg 1' },
  },
];

/** What happens in another process while this one waits for a signature. */
describe('A release of a trust list', () => {
  let world: World;
  let here: TrustListPublisher;
  let elsewhere: TrustListPublisher;

  beforeEach(async () => {
    world = aWorld();
    await world.createTenant();
    [here, elsewhere] = [new TrustListPublisher(world), new TrustListPublisher(world)];
  });

  const publish = (publisher: TrustListPublisher, description: string) =>
    publisher.publish(ACME, 'list', 'system', () =>
      configurationOf('list', { description, entities: ENTITIES }),
    );
  const remove = () => elsewhere.remove(ACME, 'list', 'system');
  const stored = () =>
    world.store.forTenant(ACME, async ({ trustLists }) => ({
      list: await trustLists.find('list'),
      versions: (await trustLists.versions('list')).map(({ list }) => list.description),
    }));
  /** Runs `event` before the signature number `which` of this process is there. */
  const during = (which: number | 'all', event: () => Promise<unknown>) => {
    const sign = world.kms.sign.bind(world.kms);
    let count = 0;
    let isInside = false;
    return sinon.stub(world.kms, 'sign').callsFake(async (key: SigningKey, data: Uint8Array | string) => {
      if (!isInside && (++count === which || which === 'all')) {
        isInside = true;
        await event();
        isInside = false;
      }
      return sign(key, data);
    });
  };

  it('is made again when somebody else was faster', async () => {
    await publish(here, 'first');
    during(1, () => publish(elsewhere, 'theirs'));
    expect(await publish(here, 'ours')).to.include({ sequenceNumber: 3, description: 'ours' });
    const { list, versions } = await stored();
    expect([list?.sequenceNumber, list?.description]).to.deep.equal([3, 'ours']);
    expect(versions).to.deep.equal(['theirs', 'first']);
  });

  it('takes no number that another one had, even if that is gone already', async () => {
    during(1, async () => {
      await publish(elsewhere, 'came');
      await remove();
    });
    expect(await publish(here, 'ours')).to.include({ sequenceNumber: 2 });
  });

  it('brings back no list that was removed meanwhile, unless it is new', async () => {
    await publish(here, 'first');
    during(1, remove);
    const changed = here.publish(ACME, 'list', 'system', ({ known }) =>
      known === undefined ? undefined : configurationOf('list', { entities: [] }),
    );
    expect(await changed).to.equal(undefined);
    expect((await stored()).list).to.equal(undefined);
  });

  it('names no key chain that went meanwhile', async () => {
    const lose = (id: string) => () =>
      world.store.forTenant(ACME, ({ keyChains }) => keyChains.remove(id), { by: 'system' });
    const signer = during(1, lose('trust-list'));
    expect(await codeOf(publish(here, 'ours'))).to.equal('invalid_input');
    signer.restore();
    const other = aWorld();
    await other.createTenant();
    world = other;
    here = new TrustListPublisher(world);
    during(1, lose('signing'));
    expect(await codeOf(publish(here, 'ours'))).to.equal('invalid_input');
    expect((await stored()).list).to.equal(undefined);
  });

  it('is given up when others are faster again and again', async () => {
    await publish(here, 'first');
    const sign = during('all', () => publish(elsewhere, 'theirs'));
    expect(await codeOf(publish(here, 'ours'))).to.equal('conflict');
    expect(sign.callCount).to.equal(40);
    expect((await stored()).list?.sequenceNumber).to.equal(21);
  });

  it('waits for those before it in the same process, and signs once', async () => {
    const sign = sinon.spy(world.kms, 'sign');
    const releases = await Promise.all(['a', 'b', 'c', 'd'].map((name) => publish(here, name)));
    expect(releases.map((release) => release?.sequenceNumber)).to.deep.equal([1, 2, 3, 4]);
    expect(sign.callCount).to.equal(4);
    const failing = here.publish(ACME, 'list', 'system', () => {
      throw new Error('broken');
    });
    const after = publish(here, 'e');
    expect(await failing.catch((error: Error) => error.message)).to.equal('broken');
    expect((await after)?.sequenceNumber).to.equal(5);
  });
});
