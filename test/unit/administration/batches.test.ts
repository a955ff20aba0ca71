import { expect } from 'chai';
import { inBatches } from '../../../bootstrap/batches.ts';

const { signal } = new AbortController();
const busy = (milliseconds: number) => {
  const until = performance.now() + milliseconds;
  while (performance.now() < until);
};

describe('work in batches', () => {
  it('goes on until a batch finds no more', async () => {
    let left = 50;
    await inBatches({ milliseconds: 10_000, signal }, async () => --left > 0);
    expect(left).to.equal(0);
  });

  it('ends with its budget, for the next run to go on', async () => {
    const start = performance.now();
    let batches = 0;
    await inBatches({ milliseconds: 60, signal }, async () => ++batches > 0);
    expect(performance.now() - start).to.be.within(55, 1000);
    expect(batches).to.be.greaterThan(1);
    batches = 0;
    await inBatches({ milliseconds: 0, signal }, async () => ++batches > 0);
    expect(batches, 'a batch at least').to.equal(1);
  });

  it('ends when it is told to', async () => {
    const stopping = new AbortController();
    let batches = 0;
    await inBatches({ milliseconds: 10_000, signal: stopping.signal }, async () => {
      if (++batches === 3) stopping.abort();
      return true;
    });
    expect(batches).to.equal(3);
  });

  it('leaves others as much time as it takes', async () => {
    const taken: number[] = [];
    const start = performance.now();
    await inBatches({ milliseconds: 200, signal }, async () => {
      const before = performance.now();
      busy(10);
      taken.push(performance.now() - before);
      return true;
    });
    const elapsed = performance.now() - start;
    const sum = (times: readonly number[]) => times.reduce((all, time) => all + time, 0);
    // Of a batch that a busy machine held up, no more than the longest rest; after the last one there is none.
    const rests = taken.slice(0, -1).map((time) => Math.min(50, time));
    expect(elapsed).to.be.greaterThan(sum(taken) + 0.8 * sum(rests));
  });
});
