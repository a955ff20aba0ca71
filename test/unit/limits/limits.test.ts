import { EventEmitter } from 'node:events';
import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import type { Request, Response } from 'express';
import { Admission } from '../../../adapters/http/limits/admission.ts';
import { BodyBudget } from '../../../adapters/http/limits/body-budget.ts';
import { RateLimits } from '../../../adapters/http/limits/rate-limits.ts';
import type { Route } from '../../../adapters/http/route.ts';
import { queueKeyOf } from '../../../adapters/http/server/serve.ts';
import type { Caller } from '../../../application/caller.ts';
import { Failure } from '../../../domain/shared/failure.ts';

describe('request admission', () => {
  /** Four slots, of which one queue key gets at most two. */
  function createAdmission(maxSlots = 4) {
    const clock = { now: 0 };
    const admission = new Admission(maxSlots, () => clock.now);
    const admitted: string[] = [];
    /** @param name the queue key and a number, as in `a1`. @returns the response of the request. */
    const enter = (name: string) => {
      const response = Object.assign(new EventEmitter(), { locals: {} }) as unknown as Response;
      const wait = admission.enter(name.slice(0, 1), response);
      if (wait === undefined) admitted.push(name);
      else
        wait.then(
          () => admitted.push(name),
          (error: unknown) => admitted.push(`${name} ${error instanceof Failure ? error.code : error}`),
        );
      return response;
    };
    return { admission, admitted, clock, enter };
  }

  // Timers are mocked, so only the tests sweep.
  before(() => mock.timers.enable({ apis: ['setInterval'] }));
  after(() => mock.timers.reset());

  it('admits them immediately while slots are free, in the same turn', () => {
    const { admitted, enter } = createAdmission();
    for (const name of ['a1', 'a2', 'b1', 'b2']) enter(name);
    expect(admitted).to.deep.equal(['a1', 'a2', 'b1', 'b2']);
  });

  it('releases slots at the end of a turn of the event loop, after all requests of that turn were read', async () => {
    const { admission, admitted, enter } = createAdmission();
    const a1 = enter('a1');
    enter('a2');
    enter('a3');
    admission.leave(a1);
    await Promise.resolve();
    expect(admitted).to.deep.equal(['a1', 'a2']);
    for (const name of ['b1', 'b2', 'b3']) enter(name);
    await turn();
    expect(admitted).to.deep.equal(['a1', 'a2', 'b1', 'b2', 'a3']);
  });

  it('admits a request once, and releases its slot once', async () => {
    const { admission, admitted, enter } = createAdmission();
    const a1 = enter('a1');
    expect(admission.enter('a', a1)).to.equal(undefined);
    enter('a2');
    expect(admission.enter('b', enter('b1')), 'one slot per request').to.equal(undefined);
    admission.leave(a1);
    admission.leave(a1);
    for (const name of ['a3', 'a4']) enter(name);
    await turn();
    expect(admitted).to.deep.equal(['a1', 'a2', 'b1', 'a3']);
  });

  it('admits a request without a queue key immediately', () => {
    const { admission, enter } = createAdmission();
    for (const name of ['a1', 'a2', 'b1', 'b2']) enter(name);
    expect(admission.enter(undefined, enter('c1'))).to.equal(undefined);
  });

  it('removes a waiting request when its caller disconnects', async () => {
    const { admission, admitted, enter } = createAdmission();
    const a1 = enter('a1');
    enter('a2');
    const a3 = enter('a3');
    enter('a4');
    a3.emit('close');
    await turn();
    expect(admitted.splice(0)).to.deep.equal(['a1', 'a2', 'a3 unavailable']);
    admission.leave(a1);
    await turn();
    await turn();
    expect(admitted).to.deep.equal(['a4']);
    expect((a3.locals as { visit?: unknown }).visit).to.equal(undefined);
  });

  it('releases the slot of a request during a remote call, and assigns one afterwards', async () => {
    const { admission, admitted, enter } = createAdmission();
    const a1 = enter('a1');
    enter('a2');
    enter('a3');
    const { promise, resolve } = Promise.withResolvers<string>();
    const work = admission.within(a1, () => admission.releaseSlotWhile(() => promise));
    await turn();
    await turn();
    expect(admitted).to.deep.equal(['a1', 'a2', 'a3']);
    for (const name of ['b1', 'b2', 'b3']) enter(name);
    resolve('answer');
    let answer: string | undefined;
    void work.then((text) => {
      answer = text;
    });
    await turn();
    expect(answer, 'other requests have all slots').to.equal(undefined);
    expect(admitted).to.deep.equal(['a1', 'a2', 'a3', 'b1', 'b2']);
  });

  it('admits a returning request as soon as a slot is free, before others of its queue key', async () => {
    const { admission, enter } = createAdmission();
    const [a1, a2] = [enter('a1'), enter('a2')];
    enter('b1');
    enter('b2');
    const calls = [Promise.withResolvers<number>(), Promise.withResolvers<number>()] as const;
    const work = admission.within(a1, () => Promise.all(calls.map(({ promise }) => admission.releaseSlotWhile(() => promise))));
    await turn();
    for (const name of ['a3', 'a4', 'b3']) enter(name);
    for (const [index, call] of calls.entries()) call.resolve(index);
    await turn();
    admission.leave(a2);
    expect(await work, 'the results of concurrent calls').to.deep.equal([0, 1]);
  });

  it('ignores work without a waiting request, or with an answered one', async () => {
    const { admission, admitted, enter } = createAdmission();
    expect(await admission.releaseSlotWhile(async () => 1)).to.equal(1);
    const a1 = enter('a1');
    const { promise, resolve } = Promise.withResolvers<number>();
    const work = admission.within(a1, () => admission.releaseSlotWhile(() => promise));
    admission.leave(a1);
    for (const name of ['a2', 'b1', 'b2']) enter(name);
    await turn();
    for (const name of ['a3', 'c1']) enter(name);
    resolve(2);
    expect(await work).to.equal(2);
    expect(admitted, 'two of a, two of b').to.deep.equal(['a1', 'a2', 'b1', 'b2', 'a3']);
  });

  it('rethrows the error of a remote call', async () => {
    const { admission, enter } = createAdmission();
    const error = new Error('no answer');
    const work = admission.within(enter('a1'), () => admission.releaseSlotWhile(() => Promise.reject(error)));
    expect(await work.catch((error: unknown) => error)).to.equal(error);
  });

  it('rejects requests that waited for ten seconds, and no others', async () => {
    const { admission, admitted, clock, enter } = createAdmission();
    for (const name of ['a1', 'a2', 'a3']) enter(name);
    clock.now = 6_000;
    enter('a4');
    admitted.splice(0);
    clock.now = 9_999;
    admission.sweep(false);
    await turn();
    expect(admitted).to.deep.equal([]);
    clock.now = 10_000;
    admission.sweep(false);
    await turn();
    expect(admitted).to.deep.equal(['a3 unavailable']);
    expect(admission.waitingCount).to.equal(1);
  });

  it('rejects a request when 2,000 of its queue key wait, and none of another key', async () => {
    const { admitted, enter } = createAdmission();
    for (let i = 0; i < 2_003; i++) enter(`a${i}`);
    enter('b1');
    await turn();
    expect(admitted).to.deep.equal(['a0', 'a1', 'b1', 'a2002 unavailable']);
  });

  it('never rejects a returning request, however long it waits', async () => {
    const { admission, admitted, clock, enter } = createAdmission();
    const [a1, a2] = [enter('a1'), enter('a2')];
    const { promise, resolve } = Promise.withResolvers<string>();
    const work = admission.within(a1, () => admission.releaseSlotWhile(() => promise));
    await turn();
    for (const name of ['a3', 'b1', 'b2', 'b3']) enter(name);
    await turn();
    admitted.splice(0);
    resolve('answer');
    await turn();
    clock.now = 60_000;
    admission.sweep(false);
    await turn();
    expect(admitted).to.deep.equal(['b3 unavailable']);
    admission.leave(a2);
    expect(await work).to.equal('answer');
  });

  for (const { situation, work, free } of [
    { situation: 'is answered', work: undefined, free: ['g1', 'h1'] },
    { situation: 'releases its slot again', work: new Promise(() => {}), free: ['g1', 'h1'] },
    { situation: 'released its slot again and needs one again', work: Promise.resolve(), free: ['g1'] },
  ]) {
    it(`leaves ${free.length} of 2 slots to others when a request ${situation} while it waits to return`, async () => {
      const { admission, admitted, enter } = createAdmission();
      const callRemote = (response: Response, result: Promise<unknown>) =>
        void admission.within(response, () => admission.releaseSlotWhile(() => result));
      const { promise, resolve } = Promise.withResolvers<void>();
      const a1 = enter('a1');
      const waiting = ['b1', 'c1'].map(enter);
      enter('d1');
      callRemote(a1, promise);
      await turn();
      waiting.push(enter('e1'));
      enter('f1');
      resolve();
      await turn();
      if (work === undefined) admission.leave(a1);
      else callRemote(a1, work);
      await turn();
      for (const response of waiting) admission.leave(response);
      await turn();
      await turn();
      for (const name of ['g1', 'h1']) enter(name);
      expect(admitted).to.deep.equal(['a1', 'b1', 'c1', 'd1', 'e1', 'f1', ...free]);
    });
  }

  it('releases slots that were held for 250 ms, only while the thread is idle', async () => {
    const { admission, admitted, clock, enter } = createAdmission();
    const responses = ['a1', 'a2'].map(enter);
    clock.now = 100;
    for (const name of ['b1', 'b2', 'a3', 'b3']) enter(name);
    admitted.splice(0);
    clock.now = 250;
    admission.sweep(false);
    await turn();
    expect(admitted).to.deep.equal([]);
    admission.sweep(true);
    await turn();
    expect(admitted, 'b has its two slots').to.deep.equal(['a3']);
    for (const response of responses) admission.leave(response);
    await turn();
    for (const name of ['c1', 'c2']) enter(name);
    expect(admitted, 'a slot is given back once').to.deep.equal(['a3', 'c1']);
  });

  it('has more slots while the thread is idle, and fewer again when it is busy', async () => {
    const { admission, admitted, enter } = createAdmission(10);
    for (let i = 1; i <= 6; i++) enter(`a${i}`);
    const [b1, b2] = [enter('b1'), enter('b2')];
    for (let i = 3; i <= 6; i++) enter(`b${i}`);
    expect(admitted.splice(0), 'eight at first').to.have.length(8);
    admission.sweep(false);
    await turn();
    expect(admitted).to.deep.equal([]);
    for (const name of ['b3', 'b4']) {
      admission.sweep(true);
      await turn();
      expect(admitted.splice(0)).to.deep.equal([name]);
    }
    admission.sweep(true);
    await turn();
    expect(admitted, 'ten at most').to.deep.equal([]);
    admission.sweep(false);
    admission.leave(b1);
    await turn();
    expect(admitted).to.deep.equal([]);
    admission.leave(b2);
    await turn();
    expect(admitted).to.deep.equal(['b5']);
  });

  it('gives one queue key more slots if there are more', async () => {
    const { admission, admitted, enter } = createAdmission(9);
    for (let i = 1; i <= 8; i++) enter(`a${i}`);
    expect(admitted.splice(0)).to.have.length(6);
    admission.sweep(true);
    await turn();
    expect(admitted).to.deep.equal(['a7']);
  });
});

describe('BodyBudget', () => {
  /** @returns functions that open a request in a budget of 80 bytes; `send` returns the code of the failure, if any. */
  function createBudget() {
    const budget = new BodyBudget(80);
    const begin = (callers: 'authenticated' | 'anonymous', ip: string, tenantId?: string) => {
      const request = Object.assign(new EventEmitter(), { ip });
      const response = Object.assign(new EventEmitter(), { locals: { caller: { tenantId } } });
      const failures: unknown[] = [];
      request.on('error', (error) => failures.push(error instanceof Failure ? error.code : error));
      budget.counter(callers)(request as unknown as Request, response as unknown as Response, () => {});
      const send = (bytes: number) => {
        request.emit('data', Buffer.alloc(bytes));
        return failures.splice(0)[0];
      };
      return { send, close: () => response.emit('close') };
    };
    return {
      fromAddress: (ip: string) => begin('anonymous', ip),
      fromTenant: (tenantId: string) => begin('authenticated', '203.0.113.9', tenantId),
    };
  }

  it('rejects more than a quarter of one half for one public address', () => {
    const { fromAddress } = createBudget();
    const [first, second] = [fromAddress('203.0.113.1'), fromAddress('203.0.113.1')];
    expect([first.send(6), second.send(4), second.send(1)]).to.deep.equal([undefined, undefined, 'unavailable']);
    expect(fromAddress('203.0.113.2').send(10)).to.equal(undefined);
  });

  it('limits the clients of one tenant to half of the anonymous half, and all of them to the half', () => {
    const { fromTenant } = createBudget();
    expect([fromTenant('a').send(20), fromTenant('a').send(1)]).to.deep.equal([undefined, 'unavailable']);
    expect([fromTenant('').send(20), fromTenant('b').send(1)]).to.deep.equal([undefined, 'unavailable']);
  });

  it('gives an operator without a tenant a whole half, independent of anonymous callers', () => {
    const { fromAddress, fromTenant } = createBudget();
    for (let i = 1; i <= 4; i++) expect(fromAddress(`203.0.113.${i}`).send(10)).to.equal(undefined);
    expect(fromAddress('203.0.113.5').send(1)).to.equal('unavailable');
    expect([fromTenant('').send(40), fromTenant('').send(1)]).to.deep.equal([undefined, 'unavailable']);
  });

  it('counts bytes until the response is closed, and reports one error for a request', () => {
    const { fromAddress } = createBudget();
    const first = fromAddress('203.0.113.1');
    first.send(10);
    expect([first.send(1), first.send(1)]).to.deep.equal(['unavailable', undefined]);
    const second = fromAddress('203.0.113.1');
    expect(second.send(1)).to.equal('unavailable');
    first.close();
    expect(fromAddress('203.0.113.1').send(10)).to.equal(undefined);
    first.close();
    first.send(5);
    expect(fromAddress('203.0.113.1').send(1)).to.equal('unavailable');
  });
});

const tenants = { isCached: (id: string) => id === 'acme' || id === 'beta' };

function queueKey(path: string, tenant?: string, tenantId?: string | null) {
  const caller = tenantId === undefined ? undefined : ({ tenantId } as Caller);
  const request = { params: tenant === undefined ? {} : { tenant } } as unknown as Request;
  return queueKeyOf({ path } as Route, request, caller, tenants);
}

describe('queue key of a request', () => {
  it('is the tenant that is called, or whose client calls', () => {
    expect(queueKey('/:tenant/token', 'acme')).to.equal(queueKey('/issuer/offer', undefined, 'acme'));
    expect(queueKey('/:tenant/token', 'beta')).not.to.equal(queueKey('/:tenant/token', 'acme'));
  });

  it('is shared by all unknown tenants and all addresses without a tenant', () => {
    const tokenQueue = queueKey('/oauth2/token');
    expect(queueKey('/:tenant/token', 'made-up-1')).to.equal(tokenQueue);
    expect(queueKey('/:tenant/token', 'made-up-2')).to.equal(tokenQueue);
    expect(queueKey('/:tenant/token', 'unknown')).to.equal(tokenQueue);
  });

  it('is a separate one for accounts that manage tenants, which no tenant can use', () => {
    const consoleQueue = queueKey('/tenant', undefined, null);
    expect(consoleQueue).not.to.equal(queueKey('/oauth2/token'));
    expect(queueKey('/issuer/offer', undefined, 'operators')).not.to.equal(consoleQueue);
  });

  it('does not exist for health and metrics', () => {
    for (const path of ['/health', '/health/ready', '/metrics']) expect(queueKey(path)).to.equal(undefined);
  });
});

const LIMITS = { token: 60, nonce: 0, login: 60, offer: 600 };

describe('limit of calls per minute', () => {
  const limits = () => new RateLimits(LIMITS);
  /** @returns the seconds to wait, or undefined for an accepted call. */
  const waitSeconds = (limiter: RateLimits, now: number, caller = 'a', group: keyof typeof LIMITS = 'token') => {
    try {
      limiter.consume(group, caller, now);
      return undefined;
    } catch (error) {
      if (!(error instanceof Failure) || error.code !== 'too_many_requests') throw error;
      return error.details.retryAfterSeconds;
    }
  };
  const countAccepted = (limiter: RateLimits, now: number, calls: number, caller?: string) =>
    Array.from({ length: calls }, () => waitSeconds(limiter, now, caller)).filter((wait) => wait === undefined).length;

  it('admits the calls of a minute at once, and no more', () => {
    const limiter = limits();
    expect(countAccepted(limiter, 1000, 200)).to.equal(60);
    expect(waitSeconds(limiter, 1000)).to.equal(1);
  });
  it('then admits one call at a time', () => {
    const limiter = limits();
    countAccepted(limiter, 0, 100);
    expect(waitSeconds(limiter, 999)).to.equal(1);
    expect(waitSeconds(limiter, 1000)).to.equal(undefined);
    expect(waitSeconds(limiter, 1000)).to.equal(1);
    expect(countAccepted(limiter, 31_000, 100)).to.equal(30);
    expect(countAccepted(limiter, 200_000, 100)).to.equal(60);
  });
  it('counts each caller and each group separately', () => {
    const limiter = limits();
    expect([countAccepted(limiter, 0, 70), countAccepted(limiter, 0, 70, 'b')]).to.deep.equal([60, 60]);
    expect(waitSeconds(limiter, 0, 'a', 'offer')).to.equal(undefined);
  });
  it('of 0 is unlimited', () => {
    const limiter = limits();
    for (let i = 0; i < 10_000; i++) limiter.consume('nonce', 'a', 0);
  });
  it('never exceeds twice the number in any minute, for any distribution of calls', () => {
    const limiter = limits();
    const times: number[] = [];
    for (let now = 0; now < 600_000; now += 137) if (waitSeconds(limiter, now) === undefined) times.push(now);
    for (const start of times) {
      const inMinute = times.filter((time) => time >= start && time < start + 60_000).length;
      expect(inMinute).to.be.at.most(120);
    }
  });
  it('evicts the least recently seen caller, so that memory stays bounded', () => {
    const limiter = limits();
    countAccepted(limiter, 0, 60, 'first');
    for (let i = 0; i < 100_001; i++) limiter.consume('token', `caller-${i}`, 0);
    expect(waitSeconds(limiter, 0, 'first')).to.equal(undefined);
  });
});
