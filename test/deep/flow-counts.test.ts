import { expect } from 'chai';
import { type AllCounts, countFlows, readCounts } from '../bench/counts.ts';

/** The lengths of certificates and of status list indices vary by a few bytes. */
const BYTES_TOLERANCE = 24;

/** The recorded counts, with the measured bytes where both are within the tolerance. */
function withCountedBytes(recordedCounts: AllCounts, measuredCounts: AllCounts): AllCounts {
  const flows = Object.entries(recordedCounts).map(([flow, steps]) => [
    flow,
    Object.fromEntries(
      Object.entries(steps).map(([step, counts]) => {
        const { bytes } = measuredCounts[flow]?.[step] ?? {};
        const isSame = Math.abs((bytes ?? 0) - (counts.bytes ?? 0)) <= BYTES_TOLERANCE;
        return [step, isSame && bytes !== undefined ? { ...counts, bytes } : counts];
      }),
    ),
  ]);
  return Object.fromEntries(flows);
}

describe('requests of wallets and backends', () => {
  it('use exactly the database and cryptography calls of test/bench/counts.json', async function () {
    const measuredCounts = await countFlows();
    if (measuredCounts === undefined) return this.skip();
    const advice = 'if that is meant, `npm run bench -- --count` writes it down';
    expect(measuredCounts, advice).to.deep.equal(withCountedBytes(readCounts(), measuredCounts));
  });
});
