import { expect } from 'chai';
import fc from 'fast-check';
import { bytesToReserve, OpenSessionBytes } from '../../../adapters/persistence/open-session-bytes.ts';
import type { Parts } from '../../../adapters/persistence/rows/change-columns.ts';
import { SESSIONS } from '../../../adapters/persistence/rows/session-codec.ts';
import type { BytesDelta, SessionBytesSql } from '../../../adapters/persistence/session-bytes-sql.ts';
import { StoreUnavailableError } from '../../../application/ports/store.ts';
import type { Change, CommitResult } from '../../../domain/changes/change.ts';
import type { SessionId, TenantId } from '../../../domain/shared/ids.ts';
import { expiryBucket } from '../../../domain/tenants/session-quota.ts';

const ACME = 'acme' as TenantId;
const MINUTE = 60_000;
/** The bytes of a session besides its request. */
const ROW_BYTES = 1_024;
const START_MS = 1_900_000_000_000;
const minutesLater = (minutes: number) => new Date(START_MS + minutes * MINUTE);

/** The table in memory. */
class MemoryTable implements SessionBytesSql {
  readonly rows = new Map<string, number>();
  readonly sessions = new Map<string, { createdAt: number; expiresAt: number; bytes: number }>();
  isShared = true;
  isReachable = true;
  calls = 0;

  async add(deltas: readonly BytesDelta[], tenants: readonly string[], now: number) {
    this.calls++;
    if (!this.isReachable) throw new StoreUnavailableError();
    for (const { tenantId, expiresAt, bytes } of deltas) {
      const key = `${tenantId} ${expiresAt}`;
      this.rows.set(key, (this.rows.get(key) ?? 0) + bytes);
    }
    return new Map(tenants.map((tenantId) => [tenantId, this.sum(tenantId, now)]));
  }

  async sizes(sessions: readonly { readonly tenantId: string; readonly id: string }[]) {
    if (!this.isReachable) throw new StoreUnavailableError();
    return sessions.flatMap(({ tenantId, id }) => {
      const session = this.sessions.get(id);
      return session === undefined ? [] : [{ tenantId, ...session }];
    });
  }

  async countedSince() {
    return START_MS;
  }

  sum(tenantId: string, now: number): number {
    return [...this.rows]
      .filter(([key]) => key.startsWith(`${tenantId} `) && Number(key.split(' ')[1]) > now)
      .reduce((sum, [, bytes]) => sum + Math.max(0, bytes), 0);
  }
}

describe('OpenSessionBytes', () => {
  const openingParts = (id: string, bytes: number, createdAt: Date, expiresAt: Date) => {
    const session = { id, status: 'active', createdAt, expiresAt };
    const fields = SESSIONS.columns.map((column) => (column === 'request' ? 'x'.repeat(bytes - ROW_BYTES) : null));
    return { change: { opens: { session } } as unknown as Change, parts: { newSession: fields } as unknown as Parts };
  };
  const completionParts = (id: string) => ({
    change: { session: { id: id as SessionId, to: 'completed' } } as Change,
    committed: { done: true, session: { status: 'completed', version: 2, moved: true } } as CommitResult,
  });
  const open = async (sessionBytes: OpenSessionBytes, id: string, { bytes = 2_000, now = minutesLater(0), minutes = 5 } = {}) => {
    await sessionBytes.reserve(ACME, bytes, now);
    const { change, parts } = openingParts(id, bytes, now, new Date(now.getTime() + minutes * MINUTE));
    sessionBytes.record(ACME, change, parts, { done: true });
    sessionBytes.release(ACME, bytes);
  };
  const complete = (sessionBytes: OpenSessionBytes, id: string) => {
    const { change, committed } = completionParts(id);
    sessionBytes.record(ACME, change, {} as Parts, committed);
  };
  const codeOf = (work: Promise<unknown> | undefined) =>
    Promise.resolve(work).then(
      () => 'done',
      (error: { code?: string }) => error.code ?? error,
    );

  it('rejects a request that exceeds the quota and accepts one that reaches it exactly', async () => {
    const sessionBytes = new OpenSessionBytes(new MemoryTable(), 4_000, START_MS);
    await open(sessionBytes, 'a');
    await open(sessionBytes, 'b');
    expect(sessionBytes.usedBy(ACME)).to.equal(4_000);
    expect(await codeOf(sessionBytes.reserve(ACME, 1, minutesLater(0)))).to.equal('session_quota_exceeded');
  });

  it('executes no statement for a creation below the quota, and one per second for rejections', async () => {
    const table = new MemoryTable();
    const sessionBytes = new OpenSessionBytes(table, 4_000, START_MS);
    await open(sessionBytes, 'a');
    const before = table.calls;
    expect(sessionBytes.reserve(ACME, 2_000, minutesLater(0))).to.equal(undefined);
    for (let index = 0; index < 50; index++)
      expect(await codeOf(sessionBytes.reserve(ACME, 1, minutesLater(0)))).to.equal('session_quota_exceeded');
    expect(table.calls).to.equal(before);
    expect(await codeOf(sessionBytes.reserve(ACME, 1, minutesLater(0.1)))).to.equal('session_quota_exceeded');
    expect(table.calls).to.equal(before + 1);
  });

  it('reads nothing if no other process writes', async () => {
    const table = new MemoryTable();
    table.isShared = false;
    const sessionBytes = new OpenSessionBytes(table, 4_000, START_MS);
    await open(sessionBytes, 'a');
    await open(sessionBytes, 'b');
    const add = table.add.bind(table);
    table.add = (deltas, tenants, now) => {
      expect(tenants).to.deep.equal([]);
      return add(deltas, tenants, now);
    };
    await sessionBytes.flush();
    complete(sessionBytes, 'b');
    await sessionBytes.flush();
    expect([sessionBytes.usedBy(ACME), table.sum(ACME, START_MS)]).to.deep.equal([2_000, 2_000]);
  });

  it('ignores a change that was not committed', async () => {
    const sessionBytes = new OpenSessionBytes(new MemoryTable(), 4_000, START_MS);
    await sessionBytes.reserve(ACME, 2_000, minutesLater(0));
    const { change, parts } = openingParts('a', 2_000, minutesLater(0), minutesLater(5));
    sessionBytes.record(ACME, change, parts, { done: false, part: 'tenant' });
    sessionBytes.release(ACME, 2_000);
    expect(sessionBytes.usedBy(ACME)).to.equal(0);
  });

  it('frees the bytes of a session that ends in the process that did not create it', async () => {
    const table = new MemoryTable();
    const [first, second] = [new OpenSessionBytes(table, 4_000, START_MS), new OpenSessionBytes(table, 4_000, START_MS)];
    await open(first, 'a');
    await first.flush();
    await open(second, 'b', { bytes: 1_500 });
    expect(second.usedBy(ACME)).to.equal(3_500);
    table.sessions.set('a', { createdAt: START_MS, expiresAt: minutesLater(5).getTime(), bytes: 2_000 - ROW_BYTES });
    complete(second, 'a');
    await second.flush();
    await second.flush();
    expect(second.usedBy(ACME)).to.equal(1_500);
  });

  it('frees those bytes later when the sizes cannot be read', async () => {
    const table = new MemoryTable();
    const [local, remote] = [new OpenSessionBytes(table, 10_000, START_MS), new OpenSessionBytes(table, 10_000, START_MS)];
    await open(local, 'one');
    await local.flush();
    table.sessions.set('one', { createdAt: START_MS, expiresAt: START_MS + 5 * MINUTE, bytes: 2_000 - ROW_BYTES });
    await remote.reserve(ACME, 0, minutesLater(0));
    complete(remote, 'one');
    table.isReachable = false;
    await remote.flush().catch(() => {});
    table.isReachable = true;
    await remote.flush();
    expect(table.sum(ACME, START_MS)).to.equal(0);
  });

  it('is zero if another process writes the end before the creation', async () => {
    const table = new MemoryTable();
    const [first, second] = [new OpenSessionBytes(table, 4_000, START_MS), new OpenSessionBytes(table, 4_000, START_MS)];
    await open(second, 'b', { bytes: 1_200, minutes: 60 });
    await open(first, 'a');
    table.sessions.set('a', { createdAt: START_MS, expiresAt: minutesLater(5).getTime(), bytes: 2_000 - ROW_BYTES });
    complete(second, 'a');
    await second.flush();
    await second.flush();
    expect(second.usedBy(ACME), 'the session of the other bucket').to.equal(1_200);
    await first.flush();
    expect(first.usedBy(ACME)).to.equal(1_200);
  });

  it('subtracts nothing for a session of an earlier release', async () => {
    const table = new MemoryTable();
    const sessionBytes = new OpenSessionBytes(table, 8_000, START_MS);
    await open(sessionBytes, 'a');
    const row = { id: 'old', status: 'active', created_at: START_MS - 1, expires_at: minutesLater(5).getTime() };
    sessionBytes.observeSession({ ...row, request: 'x'.repeat(1_000), configuration_ids: '[]', outcome: null });
    table.sessions.set('old', { createdAt: START_MS - 1, expiresAt: minutesLater(5).getTime(), bytes: 1_000 });
    complete(sessionBytes, 'old');
    await sessionBytes.flush();
    expect(sessionBytes.usedBy(ACME)).to.equal(2_000);
  });

  describe('with a deferred transaction', () => {
    const PENDING = { tenant_id: ACME, id: 'd', created_at: START_MS, expires_at: minutesLater(60).getTime() };
    const row = (status: 'pending' | 'ready' | 'retrieved', credentials: string | null = null) => ({
      ...PENDING,
      ...{ status, credentials, holder_keys: '[]' },
    });
    const openDeferred = async (sessionBytes: OpenSessionBytes) => {
      await sessionBytes.reserve(ACME, 0, minutesLater(0));
      const deferred = { id: 'd', createdAt: minutesLater(0), expiresAt: minutesLater(60) };
      const parts = { newDeferred: [] } as unknown as Parts;
      sessionBytes.record(ACME, { opens: { deferred } } as unknown as Change, parts, { done: true });
      return sessionBytes.usedBy(ACME);
    };
    const changeParts = (act: 'complete' | 'retrieve') => {
      const parts = { deferred: ['d', null, null, act === 'complete' ? 'x'.repeat(3_000) : null] };
      return [{ deferred: { id: 'd', act } } as unknown as Change, parts as unknown as Parts] as const;
    };
    const apply = (sessionBytes: OpenSessionBytes, act: 'complete' | 'retrieve') =>
      sessionBytes.record(ACME, ...changeParts(act), { done: true });

    it('reserves bytes for the credentials that complete it, and none when they are retrieved', () => {
      expect(bytesToReserve(...changeParts('complete'))).to.equal(3_000);
      expect(bytesToReserve(...changeParts('retrieve'))).to.equal(0);
    });

    it('counts its credentials once even if a read returns them before the change is recorded', async () => {
      const sessionBytes = new OpenSessionBytes(new MemoryTable(), 100_000, START_MS);
      const deferred = await openDeferred(sessionBytes);
      sessionBytes.observeDeferred(row('ready', 'x'.repeat(3_000)));
      apply(sessionBytes, 'complete');
      expect(sessionBytes.usedBy(ACME)).to.equal(deferred + 3_000);
      apply(sessionBytes, 'retrieve');
      expect(sessionBytes.usedBy(ACME)).to.equal(0);
    });

    it('releases its credentials although a read returns an earlier state', async () => {
      const sessionBytes = new OpenSessionBytes(new MemoryTable(), 100_000, START_MS);
      const deferred = await openDeferred(sessionBytes);
      apply(sessionBytes, 'complete');
      sessionBytes.observeDeferred(row('pending'));
      expect(sessionBytes.usedBy(ACME)).to.equal(deferred + 3_000);
      apply(sessionBytes, 'retrieve');
      expect(sessionBytes.usedBy(ACME)).to.equal(0);
    });

    it('is released although a read returns its end before the change is recorded', async () => {
      const sessionBytes = new OpenSessionBytes(new MemoryTable(), 100_000, START_MS);
      await openDeferred(sessionBytes);
      apply(sessionBytes, 'complete');
      sessionBytes.observeDeferred(row('retrieved'));
      apply(sessionBytes, 'retrieve');
      expect(sessionBytes.usedBy(ACME)).to.equal(0);
    });

    it('is released when another process has completed it', async () => {
      const table = new MemoryTable();
      const [first, second] = [new OpenSessionBytes(table, 100_000, START_MS), new OpenSessionBytes(table, 100_000, START_MS)];
      await openDeferred(first);
      await first.flush();
      await second.reserve(ACME, 0, minutesLater(0));
      second.observeDeferred(row('pending'));
      apply(second, 'complete');
      await second.flush();
      first.observeDeferred(row('ready', 'x'.repeat(3_000)));
      apply(first, 'retrieve');
      await first.flush();
      expect(table.sum(ACME, START_MS)).to.equal(0);
    });
  });

  it('resets its counts, also during a flush that fails', async () => {
    const table = new MemoryTable();
    const sessionBytes = new OpenSessionBytes(table, 8_000, START_MS);
    await open(sessionBytes, 'a');
    await sessionBytes.flush();
    await open(sessionBytes, 'b');
    const add = table.add.bind(table);
    table.add = async () => {
      sessionBytes.forget();
      throw new StoreUnavailableError();
    };
    expect(await codeOf(sessionBytes.flush())).to.be.instanceOf(StoreUnavailableError);
    table.add = add;
    table.rows.clear();
    expect(sessionBytes.usedBy(ACME)).to.equal(0);
    complete(sessionBytes, 'a');
    await open(sessionBytes, 'c');
    await sessionBytes.flush();
    expect([sessionBytes.usedBy(ACME), table.sum(ACME, START_MS)]).to.deep.equal([2_000, 2_000]);
  });

  it('resets sums that a flush in progress has read', async () => {
    const table = new MemoryTable();
    const sessionBytes = new OpenSessionBytes(table, 8_000, START_MS);
    await open(sessionBytes, 'a');
    const add = table.add.bind(table);
    table.add = async (...values) => {
      const sums = await add(...values);
      sessionBytes.forget();
      table.rows.clear();
      return sums;
    };
    await sessionBytes.flush();
    table.add = add;
    expect(sessionBytes.usedBy(ACME)).to.equal(0);
    await open(sessionBytes, 'b');
    expect(sessionBytes.usedBy(ACME)).to.equal(2_000);
  });

  it('keeps unwritten values, and writes them later', async () => {
    const table = new MemoryTable();
    const sessionBytes = new OpenSessionBytes(table, 8_000, START_MS);
    await open(sessionBytes, 'a');
    table.isReachable = false;
    expect(await codeOf(sessionBytes.flush())).to.be.instanceOf(StoreUnavailableError);
    expect(sessionBytes.usedBy(ACME)).to.equal(2_000);
    table.isReachable = true;
    await sessionBytes.flush();
    expect([sessionBytes.usedBy(ACME), table.sum(ACME, START_MS)]).to.deep.equal([2_000, 2_000]);
  });

  it('writes its counts when it closes', async () => {
    const table = new MemoryTable();
    const sessionBytes = new OpenSessionBytes(table, 8_000, START_MS);
    await open(sessionBytes, 'a');
    await sessionBytes.close();
    expect(table.sum(ACME, START_MS)).to.equal(2_000);
  });

  it('moves the bytes of a session whose expiry changes', async () => {
    const table = new MemoryTable();
    const sessionBytes = new OpenSessionBytes(table, 8_000, START_MS);
    await open(sessionBytes, 'a', { minutes: 60 });
    const change = { session: { id: 'a' as SessionId, endsAt: minutesLater(2) } } as Change;
    sessionBytes.record(ACME, change, { session: [] } as unknown as Parts, {
      done: true,
      session: { status: 'fetched', version: 2, moved: false },
    });
    await sessionBytes.flush();
    expect([minutesLater(1), minutesLater(3)].map((now) => table.sum(ACME, now.getTime()))).to.deep.equal([2_000, 0]);
  });

  it('is never below zero, and is zero once every session has ended or its bucket has passed', async () => {
    const step = fc.record({
      act: fc.constantFrom('open', 'complete', 'flush', 'wait'),
      process: fc.nat({ max: 1 }),
      session: fc.nat({ max: 11 }),
      minutes: fc.integer({ min: 1, max: 600 }),
      bytes: fc.integer({ min: ROW_BYTES, max: 5_000 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const table = new MemoryTable();
        const processes = [0, 1].map(() => new OpenSessionBytes(table, 1_000_000, START_MS));
        const openIds = new Set<number>();
        const endedIds = new Set<number>();
        let minute = 0;
        let last = 0;
        for (const { act, process, session, minutes, bytes } of steps) {
          const sessionBytes = processes[process] as OpenSessionBytes;
          if (act === 'wait') minute += minutes / 10;
          if (act === 'flush') await sessionBytes.flush();
          if (act === 'open' && !openIds.has(session)) {
            openIds.add(session);
            await open(sessionBytes, String(session), { bytes, now: minutesLater(minute), minutes });
            last = Math.max(last, minute + minutes);
            const expiresAt = minutesLater(minute).getTime() + minutes * MINUTE;
            table.sessions.set(String(session), { ...{ createdAt: minutesLater(minute).getTime(), expiresAt, bytes: bytes - ROW_BYTES } });
          }
          if (act === 'complete' && openIds.has(session) && !endedIds.has(session)) {
            endedIds.add(session);
            complete(sessionBytes, String(session));
          }
          expect(sessionBytes.usedBy(ACME)).to.be.at.least(0);
        }
        for (const sessionBytes of [...processes, ...processes]) await sessionBytes.flush();
        for (const session of openIds) if (!endedIds.has(session)) complete(processes[0] as never, String(session));
        for (const sessionBytes of [...processes, ...processes]) await sessionBytes.flush();
        expect(table.sum(ACME, minutesLater(minute).getTime())).to.equal(0);
        expect(table.sum(ACME, minutesLater(last + 20).getTime())).to.equal(0);
      }),
      { numRuns: 200 },
    );
  });
});

describe('expiryBucket', () => {
  it('ends at the expiry or later, by a minute or 2 % of the lifetime at most', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4e12 }), fc.integer({ min: 1, max: 315_360_000_000 }), (createdAt, lifetime) => {
        const delay = expiryBucket(createdAt, createdAt + lifetime) - (createdAt + lifetime);
        expect(delay).to.be.within(0, Math.max(MINUTE, lifetime / 50));
      }),
    );
  });

  it('uses few buckets for a tenant whose sessions have different lifetimes', () => {
    const day = 86_400_000;
    const buckets = new Set<number>();
    for (let lifetime = 1_000; lifetime <= 30 * day; lifetime += 10_000) buckets.add(expiryBucket(START_MS, START_MS + lifetime));
    expect(buckets.size).to.be.below(800);
  });
});
