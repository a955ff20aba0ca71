import { randomBytes } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import { LRUCache } from 'lru-cache';
import { PublishedTexts } from '../../../adapters/http/output/published-texts.ts';
import type { Reply } from '../../../adapters/http/route.ts';
import { ClearCaches, GetCacheStats } from '../../../application/caches/caches.ts';
import { RevocationLists } from '../../../application/certificate-status/revocation-lists.ts';
import { AuthorityPublisher } from '../../../application/keys/publish-authorities.ts';
import { ClientKeys } from '../../../application/oauth/client-keys.ts';
import type { TenantVersions } from '../../../application/ports/maintenance.ts';
import { Remote, type RemoteResponse } from '../../../application/ports/remote.ts';
import { createKeyedQueue } from '../../../application/queues/keyed-queue.ts';
import { RemoteStatusLists } from '../../../application/status-lists/remote-status-lists.ts';
import { boundedBytes, setCacheMemory } from '../../../application/tenant-cache/cache-memory.ts';
import { sizeOf } from '../../../application/tenant-cache/size-of.ts';
import { TenantValueCache } from '../../../application/tenant-cache/tenant-value-cache.ts';
import { TrustLists } from '../../../application/trust-lists/remote-trust-lists.ts';
import type { ParsedAssertion } from '../../../domain/oauth/client-assertion.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { inlineTrustLists } from '../../support/fakes.ts';
import { ACME, type AdministrationWorld, anAdministration } from '../administrators.ts';

describe('cached copies of external lists', () => {
  let world: AdministrationWorld;
  const caller = () => world.caller(['presentation:manage']);
  const recordVersion = (sequenceNumber: number) =>
    world.store.lists(ACME).recordListVersion('list', { sequenceNumber, contentHash: `${sequenceNumber}` }, world.clock.now());
  const auditEntries = async () => {
    const entries = await world.store.forTenant(ACME, ({ audit }) => audit.list({ limit: 100, kind: 'cache' }));
    return entries.map(({ action, target }) => [action, target]);
  };

  beforeEach(async () => {
    world = await anAdministration();
    await recordVersion(7);
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

  const cases: [string, ('trust-lists' | 'status-lists' | 'revocation-lists')[], { releases?: boolean }, boolean][] = [
    ['trust lists alone', ['trust-lists'], {}, true],
    ['status lists alone', ['status-lists'], {}, true],
    ['all', ['trust-lists', 'status-lists', 'revocation-lists'], {}, true],
    ['trust lists with the numbers of their releases', ['trust-lists'], { releases: true }, false],
  ];
  for (const [description, lists, options, keepsReleases] of cases) {
    it(`are deleted in every process: ${description}`, async () => {
      await new ClearCaches(world).execute(caller(), lists, options);
      expect(world.wakeUps).to.deep.equal(lists.map((each) => ({ type: 'cache', tenantId: ACME, lists: each })));
      expect((await recordVersion(1)).sequenceNumber, 'the expected sequence number').to.equal(keepsReleases ? 7 : 1);
      const cleared = [...(keepsReleases ? [] : ['seen-releases']), lists.join(' ')];
      expect(await auditEntries()).to.deep.equal(cleared.map((target) => ['cleared', target]));
    });
  }
});

const root = fileURLToPath(new URL('../../../', import.meta.url));
const sources = globSync('{adapters,application,bootstrap,domain,config}/**/*.ts', { cwd: root });
const sourceText = (path: string) => readFileSync(root + path, 'utf8');
const cachedFiles = sources.filter((path) => sourceText(path).includes('new LRUCache'));

/** Returns the arguments of each `new LRUCache(...)`. */
function optionsOf(source: string): string[] {
  return source
    .split('new LRUCache')
    .slice(1)
    .map((code) => {
      const begin = code.indexOf('(');
      let depth = 0;
      for (let index = begin; index < code.length; index++) {
        if (code[index] === '(') depth++;
        if (code[index] === ')' && --depth === 0) return code.slice(begin + 1, index);
      }
      return '';
    });
}

const isBoundedByBytes = (options: string) =>
  /\bboundedBytes\b/.test(options) || (/\bmaxSize\b/.test(options) && /\bsizeCalculation\b/.test(options) && !/=>\s*1\b/.test(options));

describe('cache contents', () => {
  // Other tests in this process may have set a smaller cache.
  before(() => setCacheMemory(472));

  it('have a limit in bytes in every cache', () => {
    expect(cachedFiles.length).to.be.greaterThan(15);
    for (const path of cachedFiles) {
      for (const options of optionsOf(sourceText(path))) expect(isBoundedByBytes(options), `${path}: ${options}`).to.equal(true);
    }
  });

  it('are reported when their limit is a number of entries', () => {
    expect(optionsOf('a = new LRUCache<A, B>({ max: f(1) }); new LRUCache(bounded(2))')).to.deep.equal(['{ max: f(1) }', 'bounded(2)']);
    for (const options of ['{ max: 5 }', 'bounded(5)', '{ maxSize: 5, sizeCalculation: () => 1 }', '']) {
      expect(isBoundedByBytes(options), options).to.equal(false);
    }
  });

  it('are listed in the documentation of memory, which lists no others', () => {
    const page = sourceText('docs/architecture/memory.md');
    const listedPaths = [...page.matchAll(/;\s+`([^`]+\.ts)`$/gm)].map(([, path]) => path);
    expect([...new Set(listedPaths)].toSorted()).to.deep.equal(cachedFiles.toSorted());
  });

  it('count keys and values', () => {
    const cache = new LRUCache<string, object>(boundedBytes(1_000_000));
    for (let index = 0; index < 100; index++) cache.set(`k${index}`, { text: 'x'.repeat(100_000) });
    expect(cache.size).to.be.within(1, 10);
    for (let index = 0; index < 100; index++) cache.set(`${'k'.repeat(50_000)}${index}`, {});
    expect(cache.size).to.be.within(1, 10);
    cache.set('huge', { text: 'x'.repeat(2_000_000) });
    expect(cache.has('huge')).to.equal(false);
  });

  it('use the size that a compiled value declares', () => {
    expect(sizeOf(Object.assign(() => {}, { bytes: 70_000 }))).to.equal(70_000);
    expect(sizeOf(() => {})).to.equal(2_000);
  });

  it('do not grow with the key sets that wallets publish', async () => {
    const keys = Array.from({ length: 400 }, (_, index) => ({ kid: `${index}`, padding: 'x'.repeat(500) }));
    const body = Buffer.from(JSON.stringify({ keys }));
    class Publisher extends Remote {
      calls = 0;
      override refuses = () => false;
      override async request(): Promise<RemoteResponse> {
        this.calls++;
        return { status: 200, contentType: 'application/json', body };
      }
    }
    const remote = new Publisher();
    const clientKeys = new ClientKeys({ remote, clock: { now: () => new Date(0) }, log: { info() {}, warn() {}, error() {} } as never });
    const findKeys = (index: number) =>
      clientKeys.candidates(
        'acme',
        { jwks_uri: `https://w${index}.example` } as never,
        { jws: { header: { kid: '1' } } } as unknown as ParsedAssertion,
      );
    for (let index = 0; index < 200; index++) await findKeys(index);
    const before = remote.calls;
    for (let index = 0; index < 100; index++) await findKeys(index);
    expect(remote.calls - before, 'evicted key sets').to.be.greaterThan(90);
  });

  it('admit a limited number of waiting callers per value, and reject the next', async () => {
    const queue = createKeyedQueue(24);
    const { promise, resolve } = Promise.withResolvers<void>();
    const calls = Array.from({ length: 24 }, () => queue.run('a', () => promise));
    const error = await queue.run('a', async () => {}).catch((error: unknown) => error);
    expect(error).to.include({ code: 'unavailable' });
    expect(await queue.run('b', async () => 'free')).to.equal('free');
    resolve();
    await Promise.all(calls);
    expect(await queue.run('a', async () => 'free')).to.equal('free');
  });
});

const TEXT = 'one of many words '.repeat(500);
const reply = (text: string | Buffer): Reply => ({ status: 200, text, contentType: 'text/plain', etag: '"1"' });
const requestFor = (encoding: string) => ({ headers: { 'accept-encoding': encoding } });
const textOf = (response: Reply) => ('text' in response ? response.text : undefined);
const headerOf = (response: Reply, name: string) => response.headers?.[name];

describe('compressed public responses', () => {
  let texts: PublishedTexts;
  beforeEach(() => {
    setCacheMemory(472);
    texts = new PublishedTexts();
  });
  after(() => setCacheMemory(472));

  it('are created once for concurrent and later requests', async () => {
    const responses = await Promise.all(Array.from({ length: 40 }, () => texts.answer(reply(TEXT), requestFor('gzip'))));
    const [first] = responses.map(textOf);
    expect(gunzipSync(first as Buffer).toString()).to.equal(TEXT);
    // Equal texts share one compressed buffer.
    expect(new Set(responses.map(textOf)).size).to.equal(1);
    expect(textOf(await texts.answer(reply(`${TEXT}`), requestFor('gzip')))).to.equal(first);
    const buffer = Buffer.from(TEXT);
    expect(textOf(await texts.answer(reply(buffer), requestFor('gzip')))).to.equal(first);
    expect(textOf(await texts.answer(reply(buffer), requestFor('gzip')))).to.equal(first);
    expect(textOf(await texts.answer(reply(`${TEXT}!`), requestFor('gzip')))).to.not.equal(first);
    expect(textOf(await texts.answer(reply(TEXT), requestFor('br')))).to.not.equal(first);
  });

  it('are not used when they are longer than the original', async () => {
    const incompressible = randomBytes(5_000);
    const response = await texts.answer(reply(incompressible), requestFor('br, gzip'));
    expect([textOf(response), headerOf(response, 'ETag'), headerOf(response, 'Content-Encoding')]).to.deep.equal([
      incompressible,
      '"1"',
      undefined,
    ]);
    expect(headerOf(response, 'Vary')).to.equal('Accept-Encoding');
  });

  it('are not cached when they would evict all others', async () => {
    setCacheMemory(1);
    const texts = new PublishedTexts();
    const limit = Math.ceil((32 / 472) * 1024 * 1024) / 2;
    const response = await texts.answer(reply('x'.repeat(limit + 1)), requestFor('gzip'));
    expect(headerOf(response, 'Content-Encoding')).to.equal(undefined);
    const belowLimit = await texts.answer(reply('x'.repeat(limit - 1)), requestFor('gzip'));
    expect(headerOf(belowLimit, 'Content-Encoding')).to.equal('gzip');
  });

  it('do not include errors', async () => {
    const errorReply: Reply = { status: 406, json: { error: 'x'.repeat(5_000) } };
    expect(await texts.answer(errorReply, requestFor('gzip'))).to.equal(errorReply);
  });
});

describe('TenantValueCache', () => {
  const ACME = 'acme' as TenantId;

  let databaseState: TenantVersions;
  let notifyRewind: () => void;
  /** Called once between the query and its answer. */
  let duringRead: () => void;
  let values: TenantValueCache<{ readonly name: string }>;
  beforeEach(() => {
    databaseState = { state: 'a', versions: [{ id: ACME, version: '1/7' }] };
    duringRead = () => {};
    const maintenance = {
      tenantVersions: async (state?: string) => {
        const answer = state === databaseState.state ? undefined : databaseState;
        duringRead();
        duringRead = () => {};
        return answer;
      },
    };
    const onRewind = (forget: () => void) => {
      notifyRewind = forget;
    };
    values = new TenantValueCache({ maintenance, onRewind } as never, 1_000_000);
  });
  const singleTenant = () => {
    const [tenant] = values.all();
    if (tenant === undefined) throw new Error('no tenant is cached');
    return tenant;
  };
  /** Simulates a restored backup with a new change that reuses the lost revision number. */
  const replaceHistory = () => {
    notifyRewind();
    databaseState = { state: 'b', versions: [{ id: ACME, version: '1/7' }] };
  };

  it('keeps a value until the version of its tenant changes', async () => {
    await values.refresh();
    values.set(singleTenant(), { name: 'one' });
    await values.refresh();
    expect(values.get(singleTenant())).to.deep.equal({ name: 'one' });
    databaseState = { state: 'b', versions: [{ id: ACME, version: '1/8' }] };
    await values.refresh();
    expect(values.get(singleTenant())).to.equal(undefined);
  });

  it('drops a value that was read before a rollback of the database', async () => {
    await values.refresh();
    values.set(singleTenant(), { name: 'one' });
    replaceHistory();
    await values.refresh();
    expect(values.get(singleTenant())).to.equal(undefined);
  });

  for (const isRefreshed of [false, true])
    it(`keeps no value of a run that began before the database was restored, ${isRefreshed ? 'after' : 'before'} the next refresh`, async () => {
      await values.refresh();
      const tenant = singleTenant();
      replaceHistory();
      if (isRefreshed) await values.refresh();
      values.set(tenant, { name: 'of the lost future' });
      await values.refresh();
      expect(values.get(singleTenant())).to.equal(undefined);
    });

  it('reads the versions again after a rollback of the database during a refresh', async () => {
    duringRead = () => {
      notifyRewind();
      databaseState = { state: 'b', versions: [{ id: ACME, version: '1/6' }] };
    };
    await values.refresh();
    expect(values.all()).to.deep.equal([{ id: ACME, version: '1/6' }]);
  });

  it('reads the versions again after a rollback of the database without changes', async () => {
    await values.refresh();
    duringRead = () => {
      notifyRewind();
      databaseState = { state: 'b', versions: [{ id: ACME, version: '1/6' }] };
    };
    await values.refresh();
    expect(values.all()).to.deep.equal([{ id: ACME, version: '1/6' }]);
  });
});
