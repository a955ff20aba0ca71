import { expect } from 'chai';
import { inBatches, type Timing } from '../../../bootstrap/jobs/jobs.ts';

const { signal } = new AbortController();

/** A clock that advances only in pauses and when `now` is set. */
class SetTiming implements Timing {
  time = 0;
  readonly pauses: number[] = [];
  now(): number {
    return this.time;
  }
  async pause(milliseconds: number): Promise<void> {
    this.pauses.push(milliseconds);
    this.time += milliseconds;
  }
}

describe('inBatches', () => {
  it('continues until a batch finds no more', async () => {
    let remaining = 50;
    await inBatches({ milliseconds: 10_000, signal }, async () => --remaining > 0, new SetTiming());
    expect(remaining).to.equal(0);
  });

  it('ends when its time budget is used up', async () => {
    const timing = new SetTiming();
    let batches = 0;
    const batch = async () => {
      timing.time += 10;
      return ++batches > 0;
    };
    await inBatches({ milliseconds: 60, signal }, batch, timing);
    // A batch of 10 ms is followed by a pause of 10 ms.
    expect(batches).to.equal(4);
  });

  it('runs one batch when its budget is zero', async () => {
    let batches = 0;
    await inBatches({ milliseconds: 0, signal }, async () => ++batches > 0);
    expect(batches).to.equal(1);
  });

  it('ends after the batch in which the signal is aborted', async () => {
    const stopping = new AbortController();
    let batches = 0;
    const batch = async () => {
      if (++batches === 3) stopping.abort();
      return true;
    };
    await inBatches({ milliseconds: 10_000, signal: stopping.signal }, batch);
    expect(batches).to.equal(3);
  });

  it('pauses as long as the batch took, and at most 50 ms', async () => {
    const timing = new SetTiming();
    const durations = [10, 50, 400, 0];
    const batch = async () => {
      timing.time += durations.shift() ?? 0;
      return durations.length > 0;
    };
    await inBatches({ milliseconds: 10_000, signal }, batch, timing);
    expect(timing.pauses).to.deep.equal([10, 50, 50]);
  });
});
