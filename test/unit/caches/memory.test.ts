import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { LRUCache } from 'lru-cache';
import { boundedBytes, setCacheMemory } from '../../../application/bounded.ts';
import { ClientKeys } from '../../../application/oauth/client-keys.ts';
import { Remote, type RemoteResponse } from '../../../application/ports/remote.ts';
import { sizeOf } from '../../../application/size-of.ts';
import type { OpenedAssertion } from '../../../domain/oauth/client-assertion.ts';
import { Turns } from '../../../domain/shared/turns.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const sources = globSync('{adapters,application,bootstrap,domain,config}/**/*.ts', { cwd: root });
const text = (path: string) => readFileSync(root + path, 'utf8');
const withCaches = sources.filter((path) => text(path).includes('new LRUCache'));

/** What stands between the parentheses of each `new LRUCache(...)`. */
function optionsOf(source: string): string[] {
  return source
    .split('new LRUCache')
    .slice(1)
    .map((rest) => {
      const begin = rest.indexOf('(');
      let depth = 0;
      for (let at = begin; at < rest.length; at++) {
        if (rest[at] === '(') depth++;
        if (rest[at] === ')' && --depth === 0) return rest.slice(begin + 1, at);
      }
      return '';
    });
}

const isBoundedByBytes = (options: string) =>
  /\bboundedBytes\b/.test(options) ||
  (/\bmaxSize\b/.test(options) && /\bsizeCalculation\b/.test(options) && !/=>\s*1\b/.test(options));

describe('What is kept in memory', () => {
  // Services that ran in this process had less.
  before(() => setCacheMemory(472));

  it('is bounded by bytes in every cache', () => {
    expect(withCaches.length).to.be.greaterThan(15);
    for (const path of withCaches) {
      for (const options of optionsOf(text(path)))
        expect(isBoundedByBytes(options), `${path}: ${options}`).to.equal(true);
    }
  });

  it('would be noticed with a bound by number', () => {
    expect(optionsOf('a = new LRUCache<A, B>({ max: f(1) }); new LRUCache(bounded(2))')).to.deep.equal([
      '{ max: f(1) }',
      'bounded(2)',
    ]);
    for (const options of ['{ max: 5 }', 'bounded(5)', '{ maxSize: 5, sizeCalculation: () => 1 }', '']) {
      expect(isBoundedByBytes(options), options).to.equal(false);
    }
  });

  it('is named on the page about memory, and nothing else is', () => {
    const page = text('docs/architecture/memory.md');
    const named = [...page.matchAll(/^\|.*\| `([^`]+\.ts)` \|$/gm)].map(([, path]) => path);
    expect(named.toSorted()).to.deep.equal(withCaches.toSorted());
  });

  it('counts keys and values', () => {
    const cache = new LRUCache<string, object>(boundedBytes(1_000_000));
    for (let index = 0; index < 100; index++) cache.set(`k${index}`, { text: 'x'.repeat(100_000) });
    expect(cache.size).to.be.within(1, 10);
    for (let index = 0; index < 100; index++) cache.set(`${'k'.repeat(50_000)}${index}`, {});
    expect(cache.size).to.be.within(1, 10);
    cache.set('huge', { text: 'x'.repeat(2_000_000) });
    expect(cache.has('huge')).to.equal(false);
  });

  it('counts what was compiled by what it says of itself', () => {
    expect(sizeOf(Object.assign(() => {}, { bytes: 70_000 }))).to.equal(70_000);
    expect(sizeOf(() => {})).to.equal(2_000);
  });

  it('does not grow with the key sets that wallets publish', async () => {
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
    const clientKeys = new ClientKeys({
      remote,
      clock: { now: () => new Date(0) },
      log: { info() {}, warn() {}, error() {} } as never,
    });
    const ask = (index: number) =>
      clientKeys.candidates(
        'acme',
        { jwks_uri: `https://w${index}.example` } as never,
        { jws: { header: { kid: '1' } } } as unknown as OpenedAssertion,
      );
    for (let index = 0; index < 200; index++) await ask(index);
    const before = remote.calls;
    for (let index = 0; index < 100; index++) await ask(index);
    expect(remote.calls - before, 'sets that were let go').to.be.greaterThan(90);
  });

  it('has room for so many that wait for one thing, and refuses the next', async () => {
    const turns = new Turns(24);
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiting = Array.from({ length: 24 }, () => turns.take('a', () => promise));
    const refused = await turns.take('a', async () => {}).catch((error: unknown) => error);
    expect(refused).to.include({ code: 'unavailable' });
    expect(await turns.take('b', async () => 'free')).to.equal('free');
    resolve();
    await Promise.all(waiting);
    expect(await turns.take('a', async () => 'free')).to.equal('free');
  });
});
