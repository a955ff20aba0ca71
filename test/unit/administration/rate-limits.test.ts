import { expect } from 'chai';
import { RateLimits } from '../../../adapters/http/rate-limits.ts';
import { Failure } from '../../../domain/shared/failure.ts';

const LIMITS = { token: 60, nonce: 0, login: 60, offer: 600 };

describe('A limit of calls per minute', () => {
  const limits = () => new RateLimits(LIMITS);
  /** @returns the seconds to wait for, or undefined when the call is let through. */
  const take = (counted: RateLimits, now: number, caller = 'a', group: keyof typeof LIMITS = 'token') => {
    try {
      counted.take(group, caller, now);
      return undefined;
    } catch (error) {
      if (!(error instanceof Failure) || error.code !== 'too_many_requests') throw error;
      return error.details.retryAfterSeconds;
    }
  };
  const passed = (counted: RateLimits, now: number, calls: number, caller?: string) =>
    Array.from({ length: calls }, () => take(counted, now, caller)).filter((wait) => wait === undefined)
      .length;

  it('lets the calls of a minute through at once, and no more', () => {
    const counted = limits();
    expect(passed(counted, 1000, 200)).to.equal(60);
    expect(take(counted, 1000)).to.equal(1);
  });
  it('lets one through after another from then on', () => {
    const counted = limits();
    passed(counted, 0, 100);
    expect(take(counted, 999)).to.equal(1);
    expect(take(counted, 1000)).to.equal(undefined);
    expect(take(counted, 1000)).to.equal(1);
    expect(passed(counted, 31_000, 100)).to.equal(30);
    expect(passed(counted, 200_000, 100)).to.equal(60);
  });
  it('counts each caller and each group for itself', () => {
    const counted = limits();
    expect([passed(counted, 0, 70), passed(counted, 0, 70, 'b')]).to.deep.equal([60, 60]);
    expect(take(counted, 0, 'a', 'offer')).to.equal(undefined);
  });
  it('of 0 is none', () => {
    const counted = limits();
    for (let i = 0; i < 10_000; i++) counted.take('nonce', 'a', 0);
  });
  it('never exceeds twice the number in any minute, however the calls are spread', () => {
    const counted = limits();
    const times: number[] = [];
    for (let now = 0; now < 600_000; now += 137) if (take(counted, now) === undefined) times.push(now);
    for (const start of times) {
      const inMinute = times.filter((time) => time >= start && time < start + 60_000).length;
      expect(inMinute).to.be.at.most(120);
    }
  });
  it('forgets whoever was not seen for longest, so that nobody fills the memory', () => {
    const counted = limits();
    passed(counted, 0, 60, 'first');
    for (let i = 0; i < 100_001; i++) counted.take('token', `caller-${i}`, 0);
    expect(take(counted, 0, 'first')).to.equal(undefined);
  });
});
