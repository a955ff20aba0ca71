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
  /** Of four slots, one party has two at most. */
  function open(maxSlots = 4) {
    const clock = { now: 0 };
    const admission = new Admission(maxSlots, () => clock.now);
    const begun: string[] = [];
    /** @param name the party and a number, as in `a1`. @returns the response of the request. */
    const come = (name: string) => {
      const response = Object.assign(new EventEmitter(), { locals: {} }) as unknown as Response;
      const wait = admission.enter(name.slice(0, 1), response);
      if (wait === undefined) begun.push(name);
      else
        wait.then(
          () => begun.push(name),
          (error: unknown) => begun.push(`${name} ${error instanceof Failure ? error.code : error}`),
        );
      return response;
    };
    return { admission, begun, clock, come };
  }

  // Only the tests sweep.
  before(() => mock.timers.enable({ apis: ['setInterval'] }));
  after(() => mock.timers.reset());

  it('admits them immediately while slots are free, in the same turn', () => {
    const { begun, come } = open();
    for (const name of ['a1', 'a2', 'b1', 'b2']) come(name);
    expect(begun).to.deep.equal(['a1', 'a2', 'b1', 'b2']);
  });

  it('releases slots at the end of a turn of the event loop, after all requests of that turn were read', async () => {
    const { admission, begun, come } = open();
    const a1 = come('a1');
    come('a2');
    come('a3');
    admission.leave(a1);
    await Promise.resolve();
    expect(begun).to.deep.equal(['a1', 'a2']);
    for (const name of ['b1', 'b2', 'b3']) come(name);
    await turn();
    expect(begun).to.deep.equal(['a1', 'a2', 'b1', 'b2', 'a3']);
  });

  it('admits a request once, and releases its slot once', async () => {
    const { admission, begun, come } = open();
    const a1 = come('a1');
    expect(admission.enter('a', a1)).to.equal(undefined);
    come('a2');
    expect(admission.enter('b', come('b1')), 'a place is a place').to.equal(undefined);
    admission.leave(a1);
    admission.leave(a1);
    for (const name of ['a3', 'a4']) come(name);
    await turn();
    expect(begun).to.deep.equal(['a1', 'a2', 'b1', 'a3']);
  });

  it('admits a request without a queue key immediately', () => {
    const { admission, come } = open();
    for (const name of ['a1', 'a2', 'b1', 'b2']) come(name);
    expect(admission.enter(undefined, come('c1'))).to.equal(undefined);
  });

  it('removes a waiting request when its caller disconnects', async () => {
    const { admission, begun, come } = open();
    const a1 = come('a1');
    come('a2');
    const a3 = come('a3');
    come('a4');
    a3.emit('close');
    await turn();
    expect(begun.splice(0)).to.deep.equal(['a1', 'a2', 'a3 unavailable']);
    admission.leave(a1);
    await turn();
    await turn();
    expect(begun).to.deep.equal(['a4']);
    expect((a3.locals as { visit?: unknown }).visit).to.equal(undefined);
  });

  it('releases the slot of a request during a remote call, and assigns one afterwards', async () => {
    const { admission, begun, come } = open();
    const a1 = come('a1');
    come('a2');
    come('a3');
    const { promise, resolve } = Promise.withResolvers<string>();
    const work = admission.within(a1, () => admission.releaseSlotWhile(() => promise));
    await turn();
    await turn();
    expect(begun).to.deep.equal(['a1', 'a2', 'a3']);
    for (const name of ['b1', 'b2', 'b3']) come(name);
    resolve('answer');
    let answer: string | undefined;
    void work.then((text) => {
      answer = text;
    });
    await turn();
    expect(answer, 'others have all places').to.equal(undefined);
    expect(begun).to.deep.equal(['a1', 'a2', 'a3', 'b1', 'b2']);
  });

  it('admits a returning request as soon as a slot is free, before others of its queue key', async () => {
    const { admission, come } = open();
    const [a1, a2] = [come('a1'), come('a2')];
    come('b1');
    come('b2');
    const calls = [Promise.withResolvers<number>(), Promise.withResolvers<number>()] as const;
    const work = admission.within(a1, () => Promise.all(calls.map(({ promise }) => admission.releaseSlotWhile(() => promise))));
    await turn();
    for (const name of ['a3', 'a4', 'b3']) come(name);
    for (const [index, call] of calls.entries()) call.resolve(index);
    await turn();
    admission.leave(a2);
    expect(await work, 'what was done at several places at once').to.deep.equal([0, 1]);
  });

  it('ignores work without a waiting request, or with an answered one', async () => {
    const { admission, begun, come } = open();
    expect(await admission.releaseSlotWhile(async () => 1)).to.equal(1);
    const a1 = come('a1');
    const { promise, resolve } = Promise.withResolvers<number>();
    const work = admission.within(a1, () => admission.releaseSlotWhile(() => promise));
    admission.leave(a1);
    for (const name of ['a2', 'b1', 'b2']) come(name);
    await turn();
    for (const name of ['a3', 'c1']) come(name);
    resolve(2);
    expect(await work).to.equal(2);
    expect(begun, 'two of a, two of b').to.deep.equal(['a1', 'a2', 'b1', 'b2', 'a3']);
  });

  it('rethrows the error of a remote call', async () => {
    const { admission, come } = open();
    const fault = new Error('no answer');
    const work = admission.within(come('a1'), () => admission.releaseSlotWhile(() => Promise.reject(fault)));
    expect(await work.catch((error: unknown) => error)).to.equal(fault);
  });

  it('rejects requests that waited for ten seconds, and no others', async () => {
    const { admission, begun, clock, come } = open();
    for (const name of ['a1', 'a2', 'a3']) come(name);
    clock.now = 6_000;
    come('a4');
    begun.splice(0);
    clock.now = 9_999;
    admission.sweep(false);
    await turn();
    expect(begun).to.deep.equal([]);
    clock.now = 10_000;
    admission.sweep(false);
    await turn();
    expect(begun).to.deep.equal(['a3 unavailable']);
    expect(admission.waitingCount).to.equal(1);
  });

  it('rejects a request when 2,000 of its queue key wait, and none of another key', async () => {
    const { begun, come } = open();
    for (let i = 0; i < 2_003; i++) come(`a${i}`);
    come('b1');
    await turn();
    expect(begun).to.deep.equal(['a0', 'a1', 'b1', 'a2002 unavailable']);
  });

  it('never rejects a returning request, however long it waits', async () => {
    const { admission, begun, clock, come } = open();
    const [a1, a2] = [come('a1'), come('a2')];
    const { promise, resolve } = Promise.withResolvers<string>();
    const work = admission.within(a1, () => admission.releaseSlotWhile(() => promise));
    await turn();
    for (const name of ['a3', 'b1', 'b2', 'b3']) come(name);
    await turn();
    begun.splice(0);
    resolve('answer');
    await turn();
    clock.now = 60_000;
    admission.sweep(false);
    await turn();
    expect(begun).to.deep.equal(['b3 unavailable']);
    admission.leave(a2);
    expect(await work).to.equal('answer');
  });

  for (const { situation, work, free } of [
    { situation: 'is answered', work: undefined, free: ['g1', 'h1'] },
    { situation: 'works elsewhere again', work: new Promise(() => {}), free: ['g1', 'h1'] },
    { situation: 'did other work elsewhere', work: Promise.resolve(), free: ['g1'] },
  ]) {
    it(`leaves ${free.length} of 2 slots to others when a request ${situation} while it waits to return`, async () => {
      const { admission, begun, come } = open();
      const elsewhere = (response: Response, result: Promise<unknown>) =>
        void admission.within(response, () => admission.releaseSlotWhile(() => result));
      const { promise, resolve } = Promise.withResolvers<void>();
      const a1 = come('a1');
      const others = ['b1', 'c1'].map(come);
      come('d1');
      elsewhere(a1, promise);
      await turn();
      others.push(come('e1'));
      come('f1');
      resolve();
      await turn();
      if (work === undefined) admission.leave(a1);
      else elsewhere(a1, work);
      await turn();
      for (const response of others) admission.leave(response);
      await turn();
      await turn();
      for (const name of ['g1', 'h1']) come(name);
      expect(begun).to.deep.equal(['a1', 'b1', 'c1', 'd1', 'e1', 'f1', ...free]);
    });
  }

  it('releases slots that were held for 250 ms, only while the thread is idle', async () => {
    const { admission, begun, clock, come } = open();
    const responses = ['a1', 'a2'].map(come);
    clock.now = 100;
    for (const name of ['b1', 'b2', 'a3', 'b3']) come(name);
    begun.splice(0);
    clock.now = 250;
    admission.sweep(false);
    await turn();
    expect(begun).to.deep.equal([]);
    admission.sweep(true);
    await turn();
    expect(begun, 'b has its two slots').to.deep.equal(['a3']);
    for (const response of responses) admission.leave(response);
    await turn();
    for (const name of ['c1', 'c2']) come(name);
    expect(begun, 'a slot is given back once').to.deep.equal(['a3', 'c1']);
  });

  it('has more slots while the thread is idle, and fewer again when it is busy', async () => {
    const { admission, begun, come } = open(10);
    for (let i = 1; i <= 6; i++) come(`a${i}`);
    const [b1, b2] = [come('b1'), come('b2')];
    for (let i = 3; i <= 6; i++) come(`b${i}`);
    expect(begun.splice(0), 'eight at first').to.have.length(8);
    admission.sweep(false);
    await turn();
    expect(begun).to.deep.equal([]);
    for (const name of ['b3', 'b4']) {
      admission.sweep(true);
      await turn();
      expect(begun.splice(0)).to.deep.equal([name]);
    }
    admission.sweep(true);
    await turn();
    expect(begun, 'ten at most').to.deep.equal([]);
    admission.sweep(false);
    admission.leave(b1);
    await turn();
    expect(begun).to.deep.equal([]);
    admission.leave(b2);
    await turn();
    expect(begun).to.deep.equal(['b5']);
  });

  it('gives one queue key more slots if there are more', async () => {
    const { admission, begun, come } = open(9);
    for (let i = 1; i <= 8; i++) come(`a${i}`);
    expect(begun.splice(0)).to.have.length(6);
    admission.sweep(true);
    await turn();
    expect(begun).to.deep.equal(['a7']);
  });
});

describe('BodyBudget', () => {
  /** @returns functions that open a request in a budget of 80 bytes; `send` returns the code of the failure, if any. */
  function open() {
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
    const { fromAddress } = open();
    const [first, second] = [fromAddress('203.0.113.1'), fromAddress('203.0.113.1')];
    expect([first.send(6), second.send(4), second.send(1)]).to.deep.equal([undefined, undefined, 'unavailable']);
    expect(fromAddress('203.0.113.2').send(10)).to.equal(undefined);
  });

  it('limits the clients of one tenant to half of the anonymous half, and all of them to the half', () => {
    const { fromTenant } = open();
    expect([fromTenant('a').send(20), fromTenant('a').send(1)]).to.deep.equal([undefined, 'unavailable']);
    expect([fromTenant('').send(20), fromTenant('b').send(1)]).to.deep.equal([undefined, 'unavailable']);
  });

  it('gives an operator without a tenant a whole half, independent of anonymous callers', () => {
    const { fromAddress, fromTenant } = open();
    for (let i = 1; i <= 4; i++) expect(fromAddress(`203.0.113.${i}`).send(10)).to.equal(undefined);
    expect(fromAddress('203.0.113.5').send(1)).to.equal('unavailable');
    expect([fromTenant('').send(40), fromTenant('').send(1)]).to.deep.equal([undefined, 'unavailable']);
  });

  it('counts bytes until the response is closed, and reports one error for a request', () => {
    const { fromAddress } = open();
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

function party(path: string, tenant?: string, tenantId?: string | null) {
  const caller = tenantId === undefined ? undefined : ({ tenantId } as Caller);
  const request = { params: tenant === undefined ? {} : { tenant } } as unknown as Request;
  return queueKeyOf({ path } as Route, request, caller, tenants);
}

describe('queue key of a request', () => {
  it('is the tenant that is called, or whose client calls', () => {
    expect(party('/:tenant/token', 'acme')).to.equal(party('/issuer/offer', undefined, 'acme'));
    expect(party('/:tenant/token', 'beta')).not.to.equal(party('/:tenant/token', 'acme'));
  });

  it('is shared by all unknown tenants and all addresses without a tenant', () => {
    const strangers = party('/oauth2/token');
    expect(party('/:tenant/token', 'made-up-1')).to.equal(strangers);
    expect(party('/:tenant/token', 'made-up-2')).to.equal(strangers);
    expect(party('/:tenant/token', 'strangers')).to.equal(strangers);
  });

  it('is a separate one for accounts that manage tenants, which no tenant can use', () => {
    const operators = party('/tenant', undefined, null);
    expect(operators).not.to.equal(party('/oauth2/token'));
    expect(party('/issuer/offer', undefined, 'operators')).not.to.equal(operators);
  });

  it('does not exist for health and metrics', () => {
    for (const path of ['/health', '/health/ready', '/metrics']) expect(party(path)).to.equal(undefined);
  });
});

const LIMITS = { token: 60, nonce: 0, login: 60, offer: 600 };

describe('limit of calls per minute', () => {
  const limits = () => new RateLimits(LIMITS);
  /** @returns the seconds to wait for, or undefined when the call is let through. */
  const take = (counted: RateLimits, now: number, caller = 'a', group: keyof typeof LIMITS = 'token') => {
    try {
      counted.consume(group, caller, now);
      return undefined;
    } catch (error) {
      if (!(error instanceof Failure) || error.code !== 'too_many_requests') throw error;
      return error.details.retryAfterSeconds;
    }
  };
  const passed = (counted: RateLimits, now: number, calls: number, caller?: string) =>
    Array.from({ length: calls }, () => take(counted, now, caller)).filter((wait) => wait === undefined).length;

  it('admits the calls of a minute at once, and no more', () => {
    const counted = limits();
    expect(passed(counted, 1000, 200)).to.equal(60);
    expect(take(counted, 1000)).to.equal(1);
  });
  it('then admits one call at a time', () => {
    const counted = limits();
    passed(counted, 0, 100);
    expect(take(counted, 999)).to.equal(1);
    expect(take(counted, 1000)).to.equal(undefined);
    expect(take(counted, 1000)).to.equal(1);
    expect(passed(counted, 31_000, 100)).to.equal(30);
    expect(passed(counted, 200_000, 100)).to.equal(60);
  });
  it('counts each caller and each group separately', () => {
    const counted = limits();
    expect([passed(counted, 0, 70), passed(counted, 0, 70, 'b')]).to.deep.equal([60, 60]);
    expect(take(counted, 0, 'a', 'offer')).to.equal(undefined);
  });
  it('of 0 is unlimited', () => {
    const counted = limits();
    for (let i = 0; i < 10_000; i++) counted.consume('nonce', 'a', 0);
  });
  it('never exceeds twice the number in any minute, for any distribution of calls', () => {
    const counted = limits();
    const times: number[] = [];
    for (let now = 0; now < 600_000; now += 137) if (take(counted, now) === undefined) times.push(now);
    for (const start of times) {
      const inMinute = times.filter((time) => time >= start && time < start + 60_000).length;
      expect(inMinute).to.be.at.most(120);
    }
  });
  it('evicts the least recently seen caller, so that memory stays bounded', () => {
    const counted = limits();
    passed(counted, 0, 60, 'first');
    for (let i = 0; i < 100_001; i++) counted.consume('token', `caller-${i}`, 0);
    expect(take(counted, 0, 'first')).to.equal(undefined);
  });
});
