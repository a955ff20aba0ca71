import { expect } from 'chai';
import { inPortions } from '../../../bootstrap/portions.ts';

const { signal } = new AbortController();
const busy = (milliseconds: number) => {
  const until = performance.now() + milliseconds;
  while (performance.now() < until);
};

describe('work in portions', () => {
  it('goes on until a portion finds no more', async () => {
    let left = 50;
    await inPortions({ milliseconds: 10_000, signal }, async () => --left > 0);
    expect(left).to.equal(0);
  });

  it('ends with its budget, for the next run to go on', async () => {
    const start = performance.now();
    let portions = 0;
    await inPortions({ milliseconds: 60, signal }, async () => ++portions > 0);
    expect(performance.now() - start).to.be.within(55, 1000);
    expect(portions).to.be.greaterThan(1);
    portions = 0;
    await inPortions({ milliseconds: 0, signal }, async () => ++portions > 0);
    expect(portions, 'a portion at least').to.equal(1);
  });

  it('ends when it is told to', async () => {
    const stopping = new AbortController();
    let portions = 0;
    await inPortions({ milliseconds: 10_000, signal: stopping.signal }, async () => {
      if (++portions === 3) stopping.abort();
      return true;
    });
    expect(portions).to.equal(3);
  });

  it('leaves others as much time as it takes', async () => {
    let taken = 0;
    const start = performance.now();
    await inPortions({ milliseconds: 200, signal }, async () => {
      const before = performance.now();
      busy(10);
      taken += performance.now() - before;
      return true;
    });
    expect(performance.now() - start).to.be.greaterThan(1.5 * taken);
  });
});
