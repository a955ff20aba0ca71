import { expect } from 'chai';
import type { Job, ThreadResult } from '../../../adapters/trust-lists/list-thread.ts';
import { joinPart, partsOf } from '../../../adapters/trust-lists/thread-protocol.ts';
import { ProcessorBudget, ThreadedTrustLists } from '../../../adapters/trust-lists/threaded-trust-lists.ts';
import type { OpenedList } from '../../../application/ports/trust-list-reader.ts';
import { SharedLists } from '../../../application/trust-lists/fetched-lists.ts';
import { TenantSlots } from '../../../application/trust-lists/tenant-slots.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { TrustedEntity, TrustedService } from '../../../domain/trust-lists/lote.ts';
import { TrustListRefusal } from '../../../domain/trust-lists/trust-list-refusal.ts';
import { inlineTrustLists } from '../../support/fakes.ts';

const KIBIBYTE = 1024;
const MEBIBYTE = 1024 * KIBIBYTE;
const NOW = new Date('2026-06-01T12:00:00Z');
const openedList: OpenedList = {
  list: { sequenceNumber: 1, issuedAt: NOW, nextUpdate: null, entities: [] },
  ...{ documentHash: 'd', contentHash: 'c', size: 1 },
};

/** A thread that finishes lists when the test calls `finish`. */
class FakeThread {
  readonly #running: ((result: ThreadResult) => void)[] = [];
  /** Sizes of the received lists. */
  readonly sizes: number[] = [];

  open({ bytes }: Job): Promise<ThreadResult> {
    this.sizes.push(bytes.length);
    return new Promise((resolve) => this.#running.push(resolve));
  }

  get running(): number {
    return this.#running.length;
  }

  async finish(cpuMs = 0): Promise<void> {
    this.#running.shift()?.({ outcome: { opened: openedList }, cpuMs });
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe('ThreadedTrustLists', () => {
  let thread: FakeThread;
  let lists: ThreadedTrustLists;
  let now: number;
  let finished: string[];

  beforeEach(() => {
    thread = new FakeThread();
    now = 0;
    finished = [];
    lists = new ThreadedTrustLists({
      ...{ thread, inline: inlineTrustLists(), program: new URL('file:///none'), now: () => now },
      budget: { milliseconds: 1_000, perMs: 60_000 },
    });
  });

  const openList = (tenant: string, bytes: Uint8Array) =>
    lists.open(bytes, { signers: [], now: NOW, tenantId: tenant as TenantId }).then(
      () => void finished.push(tenant),
      (error: unknown) => {
        if (!(error instanceof TrustListRefusal)) throw error;
        finished.push(`${tenant}: ${error.message}`);
      },
    );
  const xml = (bytes: number) => Buffer.alloc(bytes, '<');
  const jws = (bytes: number) => Buffer.alloc(bytes, 'a');
  const flush = () => new Promise((resolve) => setImmediate(resolve));

  it('parses lists of a few KiB in the calling thread, and larger ones of both formats in the worker thread', async () => {
    await Promise.all([openList('acme', xml(8 * KIBIBYTE)), openList('acme', jws(32 * KIBIBYTE))]);
    expect(thread.sizes).to.deep.equal([]);
    expect(finished).to.have.length(2);
    void openList('acme', xml(8 * KIBIBYTE + 1));
    void openList('acme', jws(32 * KIBIBYTE + 1));
    await thread.finish();
    expect(thread.sizes).to.deep.equal([8 * KIBIBYTE + 1, 32 * KIBIBYTE + 1]);
  });

  it('parses one list at a time, and one of each tenant in turn', async () => {
    for (const tenant of ['busy', 'busy', 'busy', 'other', 'third']) void openList(tenant, xml(10 * KIBIBYTE));
    for (let count = 0; count < 5; count++) {
      expect(thread.running).to.equal(1);
      await thread.finish();
    }
    expect(finished).to.deep.equal(['busy', 'other', 'third', 'busy', 'busy']);
  });

  it('delays a tenant that has used its processor time, and parses the lists of others', async () => {
    void openList('busy', xml(10 * KIBIBYTE));
    void openList('busy', xml(10 * KIBIBYTE));
    await thread.finish(2_000);
    expect(thread.running, 'twice the budget was used').to.equal(0);
    void openList('other', xml(10 * KIBIBYTE));
    expect(thread.running).to.equal(1);
    await thread.finish(10);
    now = 59_000;
    lists.advance();
    expect(thread.running, 'after 59 seconds').to.equal(0);
    now = 61_000;
    lists.advance();
    expect(thread.running, 'after 61 seconds').to.equal(1);
    await thread.finish();
    expect(finished).to.deep.equal(['busy', 'other', 'busy']);
  });

  it('rejects lists of a tenant when more than 64 lists or 48 MiB wait', async () => {
    for (let count = 0; count < 67; count++) void openList('acme', xml(10 * KIBIBYTE));
    await flush();
    expect(finished).to.deep.equal(Array.from({ length: 2 }, () => 'acme: unavailable: too many large lists wait to be parsed'));
    finished = [];
    for (let count = 0; count < 5; count++) void openList('other', xml(15 * MEBIBYTE));
    await flush();
    expect(finished).to.have.length(2);
  });

  it('evicts a waiting call of the tenant with the most for a tenant without one', async () => {
    for (const tenant of ['a', 'b', 'c']) for (let count = 0; count < 3; count++) void openList(tenant, xml(15 * MEBIBYTE));
    await flush();
    expect(finished).to.deep.equal([]);
    void openList('late', xml(15 * MEBIBYTE));
    await flush();
    expect(finished).to.have.length(1);
    expect(finished[0]).to.match(/^[bc]: unavailable/);
  });

  it('counts the time of a list whose thread fails as used by its tenant', async () => {
    const failingThread = {
      open: () => {
        now += 2_000;
        return Promise.reject(new Error('broken'));
      },
    };
    lists = new ThreadedTrustLists({
      ...{ thread: failingThread, inline: inlineTrustLists(), program: new URL('file:///none'), now: () => now },
      budget: { milliseconds: 1_000, perMs: 60_000 },
    });
    const openFailing = (tenant: string) =>
      lists.open(xml(10 * KIBIBYTE), { signers: [], now: NOW, tenantId: tenant as TenantId }).catch(() => void finished.push(tenant));
    await Promise.all([openFailing('busy'), openFailing('other')]);
    void openFailing('busy');
    await flush();
    expect(finished, 'the second list of the tenant waits').to.deep.equal(['busy', 'other']);
  });

  it('rejects the list whose thread fails, and opens the next one', async () => {
    const failingThread = {
      open: (job: Job) =>
        job.bytes.length > 20_000 ? Promise.reject(new Error('broken')) : Promise.resolve({ outcome: { opened: openedList }, cpuMs: 1 }),
    };
    lists = new ThreadedTrustLists({ thread: failingThread, inline: inlineTrustLists(), program: new URL('file:///none') });
    const first = openList('acme', xml(30_000)).catch((error: Error) => void finished.push(error.message));
    await Promise.all([first, openList('acme', xml(10_000))]);
    expect(finished).to.deep.equal(['broken', 'acme']);
  });
});

describe('ProcessorBudget', () => {
  const budget = () => new ProcessorBudget({ milliseconds: 100, perMs: 1_000 });

  it('is refilled steadily, and lets a tenant overdraw it once', () => {
    const tenants = budget();
    expect(tenants.waitMs('acme', 0)).to.equal(0);
    tenants.use('acme', 250, 0);
    expect(tenants.waitMs('other', 0)).to.equal(0);
    const wait = tenants.waitMs('acme', 0);
    expect(wait).to.be.within(1_500, 1_600);
    expect(tenants.waitMs('acme', 1_400)).to.be.greaterThan(0);
    expect(tenants.waitMs('acme', wait)).to.equal(0);
  });
});

describe('parts of a parsed list', () => {
  const service = (states: number): TrustedService => ({
    ...{ type: 'type', status: 'status', certificates: ['AAAA'], hashes: ['h'], authorities: [null] },
    history: Array.from({ length: states }, () => ({ type: undefined, status: 's', since: NOW })),
  });
  const entity = (id: number, services: readonly TrustedService[]): TrustedEntity => ({
    ...{ id: `${id}`, name: `Name ${id}`, country: 'DE', services },
  });
  const weight = (entities: readonly TrustedEntity[]) =>
    entities.flatMap(({ services }) => services).reduce((sum, { history = [] }) => sum + 5 + 2 * history.length, 0);

  it('are small, and equal the list when they are joined', () => {
    const lists: readonly TrustedEntity[][] = [
      [],
      [entity(1, [])],
      Array.from({ length: 2_500 }, (_, index) => entity(index, [service(0)])),
      [
        entity(
          1,
          Array.from({ length: 3_000 }, () => service(1)),
        ),
        entity(2, []),
        entity(3, [service(2)]),
      ],
      Array.from({ length: 7 }, (_, index) =>
        entity(
          index,
          Array.from({ length: 200 }, () => service(0)),
        ),
      ),
      [entity(1, [service(5_000)]), entity(2, [service(5_000)])],
    ];
    for (const entities of lists) {
      const joined: TrustedEntity[] = [];
      for (const part of partsOf(entities)) {
        expect(weight(part.entities)).to.be.at.most(1_000 + 10_010);
        joinPart(joined, structuredClone(part));
      }
      expect(joined).to.deep.equal(entities);
    }
    const manyHistories = lists[2] ?? [];
    expect([...partsOf(manyHistories)].every((part) => weight(part.entities) <= 1_010)).to.equal(true);
  });
});

describe('TenantSlots', () => {
  it('runs steps of a tenant up to its slots, the others in order, and another tenant in parallel', async () => {
    const slots = new TenantSlots(2);
    const started: string[] = [];
    const finishers = new Map<string, (error?: Error) => void>();
    const runNamed = (tenant: string, name: string) =>
      slots.run(tenant, () => {
        started.push(name);
        return new Promise<void>((resolve, reject) => {
          finishers.set(name, (error) => (error === undefined ? resolve() : reject(error)));
        });
      });
    const flush = () => new Promise((resolve) => setImmediate(resolve));
    const first = runNamed('acme', 'a1').catch((error: Error) => error.message);
    for (const name of ['a2', 'a3', 'a4']) void runNamed('acme', name);
    void runNamed('other', 'o1');
    await flush();
    expect(started).to.deep.equal(['a1', 'a2', 'o1']);
    finishers.get('a1')?.(new Error('failed'));
    expect(await first).to.equal('failed');
    await flush();
    expect(started).to.deep.equal(['a1', 'a2', 'o1', 'a3']);
  });
});

type List = { readonly name: string; readonly bytes: number };

const names = (lists: SharedLists<List>, tenant: string) =>
  lists
    .entries(tenant)
    .map(({ name }) => name)
    .sort()
    .join('');

describe('memory for followed lists', () => {
  let lists: SharedLists<List>;
  const add = (tenant: string, name: string, bytes = 10) => lists.set(tenant, name, { name, bytes });
  beforeEach(() => {
    lists = new SharedLists({ maxBytes: 100, sizeOf: ({ bytes }) => bytes });
  });

  it('is evicted from the tenant that uses most of it, least recently used first', () => {
    add('small', 'a');
    for (const name of 'bcdefghij') add('large', name);
    lists.get('large', 'b');
    add('third', 'k');
    add('third', 'l');
    expect(names(lists, 'small')).to.equal('a');
    expect(names(lists, 'large')).to.equal('befghij');
    expect(names(lists, 'third')).to.equal('kl');
  });
  it('does not store a list that is too large, and evicts no other list for it', () => {
    add('small', 'a');
    add('large', 'b', 101);
    expect(names(lists, 'small') + names(lists, 'large')).to.equal('a');
  });
  it('counts a replaced list once, and a cleared one not at all', () => {
    for (let round = 0; round < 50; round += 1) add('one', 'a', 60);
    add('two', 'b', 40);
    expect(names(lists, 'one') + names(lists, 'two')).to.equal('ab');
    lists.clear('one');
    add('two', 'c', 60);
    expect(names(lists, 'two')).to.equal('bc');
  });
});
