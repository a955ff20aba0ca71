import { expect } from 'chai';
import sinon from 'sinon';
import { GuardedCalls, KeyRejectedError } from '../../../adapters/kms/guarded-calls.ts';
import { Failure } from '../../../domain/shared/failure.ts';

const TIMEOUT_MS = 1_000;
const REST_MS = 2_000;

/** A call that the test settles. */
function pendingCall<T = string>() {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const work = sinon.spy((_signal: AbortSignal) => promise);
  return { work, resolve, reject };
}

describe('GuardedCalls', () => {
  let clock: sinon.SinonFakeTimers;
  beforeEach(() => {
    clock = sinon.useFakeTimers();
  });
  afterEach(() => clock.restore());

  const guarded = (atOnce = 2) => new GuardedCalls({ name: 'house', timeoutMs: TIMEOUT_MS, atOnce });
  /** Returns the result or the error of a call. */
  const outcome = (call: Promise<unknown>): Promise<unknown> => call.catch((error: unknown) => error);
  const flushTimers = () => clock.tickAsync(0);
  const failingCall = () => Promise.reject(new Error('the provider failed'));
  const fail = async (calls: GuardedCalls, times: number) => {
    for (let i = 0; i < times; i++) await outcome(calls.run(failingCall));
  };

  function expectUnavailable(error: unknown, reason: RegExp): void {
    expect(error).to.be.instanceOf(Failure).with.property('code', 'unavailable');
    expect((error as Failure).details).to.include({ retryAfterSeconds: REST_MS / 1000 });
    expect((error as Failure).cause)
      .to.have.property('message')
      .that.matches(reason);
    expect((error as Failure).message).to.not.match(reason);
  }

  it('returns the result of a call', async () => {
    expect(await guarded().run(async () => 'signed')).to.equal('signed');
  });

  it('reports that it is unavailable, and logs provider and cause', async () => {
    expectUnavailable(await outcome(guarded().run(failingCall)), /"house".*the provider failed/);
  });

  it('treats a synchronous throw like a rejection, and releases the slot', async () => {
    const calls = guarded(1);
    const error = await outcome(
      calls.run(() => {
        throw new Error('at once');
      }),
    );
    expectUnavailable(error, /at once/);
    expect(await calls.run(async () => 'next')).to.equal('next');
    await clock.tickAsync(TIMEOUT_MS);
    expect(await calls.run(async () => 'later')).to.equal('later');
  });

  describe('with a timeout', () => {
    it('aborts a call that takes longer', async () => {
      const { work } = pendingCall();
      const result = outcome(guarded().run(work));
      await clock.tickAsync(TIMEOUT_MS - 1);
      expect(work.firstCall.args[0].aborted).to.equal(false);
      await clock.tickAsync(1);
      expect(work.firstCall.args[0].aborted).to.equal(true);
      expectUnavailable(await result, /no answer within 1000 ms/);
    });

    it('counts the time of waiting for a slot', async () => {
      const calls = guarded(1);
      const [first, second] = [pendingCall(), pendingCall()];
      const firstResult = outcome(calls.run(first.work));
      await clock.tickAsync(600);
      const secondResult = outcome(calls.run(second.work));
      await clock.tickAsync(399);
      first.resolve('done');
      expect(await firstResult).to.equal('done');
      await clock.tickAsync(600);
      expect(second.work.firstCall.args[0].aborted).to.equal(false);
      await clock.tickAsync(1);
      expectUnavailable(await secondResult, /no answer/);
    });

    it('does not wait for a slot longer than the timeout, which is no fault of the provider', async () => {
      const calls = guarded(1);
      const first = pendingCall();
      void outcome(calls.run(first.work));
      const pending = pendingCall();
      const results = Array.from({ length: 10 }, () => outcome(calls.run(pending.work)));
      await clock.tickAsync(TIMEOUT_MS);
      for (const result of results) expectUnavailable(await result, /other calls/);
      expect(pending.work.callCount).to.equal(0);
      first.resolve('late');
      await flushTimers();
      expect(await calls.run(async () => 'next')).to.equal('next');
    });
  });

  describe('with concurrent calls', () => {
    it('limits concurrent calls, and serves waiting ones in order', async () => {
      const calls = guarded(2);
      const all = Array.from({ length: 4 }, () => pendingCall());
      const results = all.map(({ work }) => calls.run(work));
      await flushTimers();
      expect(all.map(({ work }) => work.callCount)).to.deep.equal([1, 1, 0, 0]);
      all[1]?.resolve('b');
      await flushTimers();
      expect(all.map(({ work }) => work.callCount)).to.deep.equal([1, 1, 1, 0]);
      all[2]?.reject(new Error('c'));
      await outcome(results[2] ?? Promise.resolve());
      await flushTimers();
      expect(all.map(({ work }) => work.callCount)).to.deep.equal([1, 1, 1, 1]);
      all[0]?.resolve('a');
      all[3]?.resolve('d');
      expect(await Promise.all([results[0], results[1], results[3]])).to.deep.equal(['a', 'b', 'd']);
    });

    it('limits the number of waiting calls', async () => {
      const calls = guarded(1);
      const first = pendingCall();
      const firstResult = calls.run(first.work);
      const queued = Array.from({ length: 5_000 }, () => calls.run(async () => 'ok'));
      expectUnavailable(await outcome(calls.run(async () => 'ok')), /too many calls wait/);
      first.resolve('done');
      expect(await firstResult).to.equal('done');
      expect(new Set(await Promise.all(queued))).to.deep.equal(new Set(['ok']));
    });

    it('keeps the slot of an aborted call until it has really ended', async () => {
      const calls = guarded(1);
      const stuckCalls = pendingCall();
      const first = outcome(calls.run(stuckCalls.work));
      await clock.tickAsync(TIMEOUT_MS);
      expectUnavailable(await first, /no answer/);
      const nextCall = sinon.spy(async () => 'next');
      const second = calls.run(nextCall);
      await clock.tickAsync(TIMEOUT_MS / 2);
      expect(nextCall.callCount).to.equal(0);
      stuckCalls.resolve('too late');
      expect(await second).to.equal('next');
    });
  });

  it('opens the circuit breaker when all concurrent calls hang, although no other call gets a slot', async () => {
    const calls = guarded(2);
    const stuckCalls = [pendingCall(), pendingCall()];
    const lateResults = stuckCalls.map(({ work }) => outcome(calls.run(work)));
    await clock.tickAsync(TIMEOUT_MS);
    const queued = Array.from({ length: 3 }, () => outcome(calls.run(pendingCall().work)));
    await clock.tickAsync(TIMEOUT_MS);
    await Promise.all([...lateResults, ...queued]);
    const began = Date.now();
    expectUnavailable(await outcome(calls.run(async () => 'next')), /not called for some seconds/);
    expect(Date.now()).to.equal(began);
    for (const { resolve } of stuckCalls) resolve('too late');
    await clock.tickAsync(REST_MS);
    expect(await calls.run(async () => 'next')).to.equal('next');
  });

  describe('after failures', () => {
    it('stops calling a provider after five failures in a row, then tries one call', async () => {
      const calls = guarded(2);
      await fail(calls, 5);
      const work = sinon.spy(async () => 'ok');
      expectUnavailable(await outcome(calls.run(work)), /several times in a row/);
      await clock.tickAsync(REST_MS - 1);
      expectUnavailable(await outcome(calls.run(work)), /several times in a row/);
      expect(work.callCount).to.equal(0);

      await clock.tickAsync(1);
      const probe = pendingCall();
      const probed = calls.run(probe.work);
      await flushTimers();
      expectUnavailable(await outcome(calls.run(work)), /several times in a row/);
      expect([probe.work.callCount, work.callCount]).to.deep.equal([1, 0]);
      probe.resolve('back');
      expect(await probed).to.equal('back');
      expect(await Promise.all([calls.run(work), calls.run(work)])).to.deep.equal(['ok', 'ok']);
    });

    it('stops again when that call fails, too', async () => {
      const calls = guarded(2);
      await fail(calls, 5);
      await clock.tickAsync(REST_MS);
      expectUnavailable(await outcome(calls.run(failingCall)), /the provider failed/);
      const work = sinon.spy(async () => 'ok');
      await clock.tickAsync(REST_MS - 1);
      expectUnavailable(await outcome(calls.run(work)), /several times in a row/);
      await clock.tickAsync(1);
      expect(await calls.run(work)).to.equal('ok');
    });

    it('tries the next call if the result of that one is not conclusive', async () => {
      for (const error of [new Failure('invalid_input'), new KeyRejectedError('gone')]) {
        const calls = guarded(2);
        await fail(calls, 5);
        await clock.tickAsync(REST_MS);
        await outcome(calls.run(() => Promise.reject(error)));
        expect(await calls.run(async () => 'ok')).to.equal('ok');
      }
    });

    it('continues to call after four failures', async () => {
      const calls = guarded(2);
      await fail(calls, 4);
      expect(await calls.run(async () => 'ok')).to.equal('ok');
      await fail(calls, 4);
      expect(await calls.run(async () => 'ok')).to.equal('ok');
    });

    it('counts timeouts', async () => {
      const calls = guarded(5);
      const results = Array.from({ length: 5 }, () => outcome(calls.run(pendingCall().work)));
      await clock.tickAsync(TIMEOUT_MS);
      await Promise.all(results);
      expectUnavailable(await outcome(calls.run(async () => 'ok')), /several times in a row/);
    });

    it('does not count a rejected key, which is still unavailable', async () => {
      const calls = guarded(2);
      for (let i = 0; i < 10; i++) {
        const error = await outcome(calls.run(() => Promise.reject(new KeyRejectedError('the key is gone'))));
        expectUnavailable(error, /the key is gone/);
      }
      expect(await calls.run(async () => 'ok')).to.equal('ok');
    });

    it('rethrows a Failure without counting it', async () => {
      const calls = guarded(2);
      const failure = new Failure('invalid_input', 'no such key');
      for (let i = 0; i < 10; i++) {
        expect(await outcome(calls.run(() => Promise.reject(failure)))).to.equal(failure);
      }
      expect(await calls.run(async () => 'ok')).to.equal('ok');
    });
  });
});
