import { expect } from 'chai';
import { ClearCaches, GetCacheStats } from '../../../application/caches/caches.ts';
import { AuthorityPublisher } from '../../../application/keys/publish-authorities.ts';
import { RevocationLists } from '../../../application/revocation/revocation-lists.ts';
import { RemoteStatusLists } from '../../../application/status-lists/remote-status-lists.ts';
import { TrustLists } from '../../../application/trust-lists/remote-trust-lists.ts';
import { inlineTrustLists } from '../../support/inline-trust-lists.ts';
import { type AdministrationWorld, anAdministration } from '../administration/kit.ts';
import { ACME } from '../administration/world.ts';

describe('Copies of the lists of others', () => {
  let world: AdministrationWorld;
  const caller = () => world.caller(['presentation:manage']);
  const release = (sequenceNumber: number) =>
    world.store
      .lists(ACME)
      .noteRelease('list', { sequenceNumber, contentHash: `${sequenceNumber}` }, world.clock.now());
  const noted = async () => {
    const entries = await world.store.forTenant(ACME, ({ audit }) =>
      audit.list({ limit: 100, kind: 'cache' }),
    );
    return entries.map(({ action, target }) => [action, target]);
  };

  beforeEach(async () => {
    world = await anAdministration();
    await release(7);
  });

  it('are counted by kind', async () => {
    const ports = {
      ...world,
      trustLists: new TrustLists({ ...world, trustListReader: inlineTrustLists() }),
      remoteStatusLists: new RemoteStatusLists(world),
      revocationLists: new RevocationLists({ ...world, authorityPublisher: new AuthorityPublisher(world) }),
    };
    const stats = await new GetCacheStats(ports).execute(caller());
    expect(stats).to.have.all.keys('trustLists', 'statusLists', 'revocationLists', 'followedLists');
    expect(stats.followedLists).to.deep.equal([]);
    expect(stats.trustLists).to.deep.equal(ports.trustLists.stats(ACME));
    expect(stats.statusLists).to.deep.equal(ports.remoteStatusLists.stats(ACME));
    expect(stats.revocationLists).to.deep.equal(ports.revocationLists.stats(ACME));
  });

  const cases: [
    string,
    ('trust-lists' | 'status-lists' | 'revocation-lists')[],
    { releases?: boolean },
    boolean,
  ][] = [
    ['trust lists alone', ['trust-lists'], {}, true],
    ['status lists alone', ['status-lists'], {}, true],
    ['all', ['trust-lists', 'status-lists', 'revocation-lists'], {}, true],
    ['trust lists with the numbers of their releases', ['trust-lists'], { releases: true }, false],
  ];
  for (const [what, lists, options, keepsReleases] of cases) {
    it(`are dropped in every process: ${what}`, async () => {
      await new ClearCaches(world).execute(caller(), lists, options);
      expect(world.woken).to.deep.equal(
        lists.map((each) => ({ type: 'cache', tenantId: ACME, lists: each })),
      );
      expect((await release(1)).sequenceNumber, 'the newest that counts').to.equal(keepsReleases ? 7 : 1);
      const cleared = [...(keepsReleases ? [] : ['seen-releases']), lists.join(' ')];
      expect(await noted()).to.deep.equal(cleared.map((target) => ['cleared', target]));
    });
  }
});
