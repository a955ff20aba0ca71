import { expect } from 'chai';
import { BatchSize } from '../../../adapters/persistence/maintenance/batch-size.ts';

describe('BatchSize', () => {
  it('shrinks while rows are slow and grows while they are quick, within its limits', async () => {
    let time = 0;
    const size = new BatchSize(100, () => time);
    const run = (millisecondsPerRow: number, limit = 10_000) =>
      size.run(limit, async (rows) => {
        size.timed(() => {
          time += rows * millisecondsPerRow;
        });
        time += 1_000;
        return rows;
      });
    expect(await run(1)).to.equal(100);
    expect(await run(1), '8 ms').to.equal(10);
    for (let batch = 0; batch < 30; batch++) await run(0.01);
    expect(await run(0.01)).to.equal(800);
    expect(await run(0.01, 50), 'of the caller').to.equal(50);
    expect(await run(0.01), 'a small batch says nothing').to.equal(800);
  });
});
