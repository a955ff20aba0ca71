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
const opened: OpenedList = {
  list: { sequenceNumber: 1, issuedAt: NOW, nextUpdate: null, entities: [] },
  ...{ documentHash: 'd', contentHash: 'c', size: 1 },
};

/** A thread whose lists are opened when the test says so. */
class FakeThread {
  readonly #running: ((result: ThreadResult) => void)[] = [];
  /** Sizes of the lists that it was given. */
  readonly given: number[] = [];

  open({ bytes }: Job): Promise<ThreadResult> {
    this.given.push(bytes.length);
    return new Promise((resolve) => this.#running.push(resolve));
  }

  get running(): number {
    return this.#running.length;
  }

  async finish(cpuMs = 0): Promise<void> {
    this.#running.shift()?.({ outcome: { opened }, cpuMs });
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe('ThreadedTrustLists', () => {
  let thread: FakeThread;
  let lists: ThreadedTrustLists;
  let now: number;
  let order: string[];

  beforeEach(() => {
    thread = new FakeThread();
    now = 0;
    order = [];
    lists = new ThreadedTrustLists({
      ...{ thread, inline: inlineTrustLists(), program: new URL('file:///none'), now: () => now },
      budget: { milliseconds: 1_000, perMs: 60_000 },
    });
  });

  const open = (tenant: string, bytes: Uint8Array) =>
    lists.open(bytes, { signers: [], now: NOW, tenantId: tenant as TenantId }).then(
      () => void order.push(tenant),
      (error: unknown) => {
        if (!(error instanceof TrustListRefusal)) throw error;
        order.push(`${tenant}: ${error.message}`);
      },
    );
  const xml = (bytes: number) => Buffer.alloc(bytes, '<');
  const jws = (bytes: number) => Buffer.alloc(bytes, 'a');
  const settle = () => new Promise((resolve) => setImmediate(resolve));

  it('parses lists of a few KiB in the calling thread, and larger ones of both formats in the worker thread', async () => {
    await Promise.all([open('acme', xml(8 * KIBIBYTE)), open('acme', jws(32 * KIBIBYTE))]);
    expect(thread.given).to.deep.equal([]);
    expect(order).to.have.length(2);
    void open('acme', xml(8 * KIBIBYTE + 1));
    void open('acme', jws(32 * KIBIBYTE + 1));
    await thread.finish();
    expect(thread.given).to.deep.equal([8 * KIBIBYTE + 1, 32 * KIBIBYTE + 1]);
  });

  it('parses one list at a time, and one of each tenant in turn', async () => {
    for (const tenant of ['busy', 'busy', 'busy', 'other', 'third']) void open(tenant, xml(10 * KIBIBYTE));
    for (let count = 0; count < 5; count++) {
      expect(thread.running).to.equal(1);
      await thread.finish();
    }
    expect(order).to.deep.equal(['busy', 'other', 'third', 'busy', 'busy']);
  });

  it('delays a tenant that has used its processor time, and parses the lists of others', async () => {
    void open('busy', xml(10 * KIBIBYTE));
    void open('busy', xml(10 * KIBIBYTE));
    await thread.finish(2_000);
    expect(thread.running, 'twice the budget was used').to.equal(0);
    void open('other', xml(10 * KIBIBYTE));
    expect(thread.running).to.equal(1);
    await thread.finish(10);
    now = 59_000;
    lists.advance();
    expect(thread.running, 'after 59 seconds').to.equal(0);
    now = 61_000;
    lists.advance();
    expect(thread.running, 'after 61 seconds').to.equal(1);
    await thread.finish();
    expect(order).to.deep.equal(['busy', 'other', 'busy']);
  });

  it('rejects lists of a tenant when more than 64 lists or 48 MiB wait', async () => {
    for (let count = 0; count < 67; count++) void open('acme', xml(10 * KIBIBYTE));
    await settle();
    expect(order).to.deep.equal(Array.from({ length: 2 }, () => 'acme: unavailable: too many large lists wait to be parsed'));
    order = [];
    for (let count = 0; count < 5; count++) void open('other', xml(15 * MEBIBYTE));
    await settle();
    expect(order).to.have.length(2);
  });

  it('evicts a waiting call of the tenant with the most for a tenant without one', async () => {
    for (const tenant of ['a', 'b', 'c']) for (let count = 0; count < 3; count++) void open(tenant, xml(15 * MEBIBYTE));
    await settle();
    expect(order).to.deep.equal([]);
    void open('late', xml(15 * MEBIBYTE));
    await settle();
    expect(order).to.have.length(1);
    expect(order[0]).to.match(/^[bc]: unavailable/);
  });

  it('counts the time of a list whose thread fails as used by its tenant', async () => {
    const failing = {
      open: () => {
        now += 2_000;
        return Promise.reject(new Error('broken'));
      },
    };
    lists = new ThreadedTrustLists({
      ...{ thread: failing, inline: inlineTrustLists(), program: new URL('file:///none'), now: () => now },
      budget: { milliseconds: 1_000, perMs: 60_000 },
    });
    const fail = (tenant: string) =>
      lists.open(xml(10 * KIBIBYTE), { signers: [], now: NOW, tenantId: tenant as TenantId }).catch(() => void order.push(tenant));
    await Promise.all([fail('busy'), fail('other')]);
    void fail('busy');
    await settle();
    expect(order, 'the second list of the tenant waits').to.deep.equal(['busy', 'other']);
  });

  it('rejects the list whose thread fails, and opens the next one', async () => {
    const failing = {
      open: (job: Job) =>
        job.bytes.length > 20_000 ? Promise.reject(new Error('broken')) : Promise.resolve({ outcome: { opened }, cpuMs: 1 }),
    };
    lists = new ThreadedTrustLists({ thread: failing, inline: inlineTrustLists(), program: new URL('file:///none') });
    const first = open('acme', xml(30_000)).catch((error: Error) => void order.push(error.message));
    await Promise.all([first, open('acme', xml(10_000))]);
    expect(order).to.deep.equal(['broken', 'acme']);
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
      Array.from({ length: 2_500 }, (_, at) => entity(at, [service(0)])),
      [
        entity(
          1,
          Array.from({ length: 3_000 }, () => service(1)),
        ),
        entity(2, []),
        entity(3, [service(2)]),
      ],
      Array.from({ length: 7 }, (_, at) =>
        entity(
          at,
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
    const many = lists[2] ?? [];
    expect([...partsOf(many)].every((part) => weight(part.entities) <= 1_010)).to.equal(true);
  });
});

describe('TenantSlots', () => {
  it('runs steps of a tenant up to its slots, the others in order, and another tenant in parallel', async () => {
    const slots = new TenantSlots(2);
    const started: string[] = [];
    const ends = new Map<string, (error?: Error) => void>();
    const run = (tenant: string, name: string) =>
      slots.run(tenant, () => {
        started.push(name);
        return new Promise<void>((resolve, reject) => {
          ends.set(name, (error) => (error === undefined ? resolve() : reject(error)));
        });
      });
    const settle = () => new Promise((resolve) => setImmediate(resolve));
    const first = run('acme', 'a1').catch((error: Error) => error.message);
    for (const name of ['a2', 'a3', 'a4']) void run('acme', name);
    void run('other', 'o1');
    await settle();
    expect(started).to.deep.equal(['a1', 'a2', 'o1']);
    ends.get('a1')?.(new Error('failed'));
    expect(await first).to.equal('failed');
    await settle();
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
