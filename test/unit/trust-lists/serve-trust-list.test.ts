import { expect } from 'chai';
import { ServeTrustList } from '../../../application/trust-lists/serve-trust-list.ts';
import { TrustListPublisher } from '../../../application/trust-lists/trust-list-publisher.ts';
import type { Failure } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { configurationOf } from '../../../domain/trust-lists/list-configuration.ts';
import { ACME, aWorld, codeOf, type World } from '../administration/world.ts';

const ENTITIES = [
  {
    type: 'internal' as const,
    issuerKeyChainId: 'signing',
    info: { name: 'Acme', country: 'DE', streetAddress: 'Weg 1' },
  },
];
const DAY_MS = 86_400_000;

describe('ServeTrustList', () => {
  let world: World;
  let serve: ServeTrustList;
  let jwt: string;
  let end: number;

  before(async () => {
    world = aWorld();
    serve = new ServeTrustList(world);
    await world.createTenant();
    const publisher = new TrustListPublisher(world);
    const published = await publisher.publish(ACME, 'list', 'system', () =>
      configurationOf('list', { description: 'first', entities: ENTITIES }),
    );
    if (published === undefined) throw new Error('no list');
    jwt = published.jwt;
    end = published.nextUpdate.getTime();
  });

  const at = async <T>(time: number, work: () => Promise<T>) => {
    const now = world.clock.time;
    world.clock.time = new Date(time);
    try {
      return await work();
    } finally {
      world.clock.time = now;
    }
  };

  it('serves the release as it was signed, for an hour at most', async () => {
    const served = await serve.execute(ACME, 'list');
    expect([served.jwt, served.maxAgeSeconds]).to.deep.equal([jwt, 3600]);
    expect(served.etag).to.equal(`"${jwt.split('.')[2]?.slice(0, 43)}"`);
  });

  it('lets nobody keep it longer than it counts', async () => {
    expect(end - world.clock.now().getTime()).to.be.closeTo(30 * DAY_MS, 1000);
    const { maxAgeSeconds } = await at(end - 90_000, () => serve.execute(ACME, 'list'));
    expect(maxAgeSeconds).to.equal(90);
  });

  it('serves nothing that has ended, and asks to come again', async () => {
    const failure = await at(end, () => serve.execute(ACME, 'list').catch((error: Failure) => error));
    if (!('details' in failure)) throw new Error('nothing failed');
    expect([failure.code, failure.details.retryAfterSeconds]).to.deep.equal(['unavailable', 300]);
  });

  it('is not found under another name, or at another tenant', async () => {
    expect(await codeOf(serve.execute(ACME, 'none'))).to.equal('not_found');
    expect(await codeOf(serve.execute('nobody' as TenantId, 'list'))).to.equal('not_found');
  });

  it('serves suspended tenants, whose lists stay published', async () => {
    await world.store.forTenant(
      ACME,
      async ({ tenant }) => tenant.save({ ...(await tenant.get()), status: 'suspended' }),
      { by: 'system' },
    );
    expect((await serve.execute(ACME, 'list')).jwt).to.equal(jwt);
  });
});
