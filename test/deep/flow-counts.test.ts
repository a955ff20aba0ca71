import { expect } from 'chai';
import { type AllCounts, countFlows, readCounts } from '../bench/counts.ts';

/** Certificates are a few bytes longer or shorter, by the signature on them, and so is a position in a status list. */
const BYTES_APART = 24;

/** What is recorded, with the counted bytes wherever they are as good as the same. */
function withBytesOf(recorded: AllCounts, counted: AllCounts): AllCounts {
  const flows = Object.entries(recorded).map(([flow, steps]) => [
    flow,
    Object.fromEntries(
      Object.entries(steps).map(([step, counts]) => {
        const { bytes } = counted[flow]?.[step] ?? {};
        const isSame = Math.abs((bytes ?? 0) - (counts.bytes ?? 0)) <= BYTES_APART;
        return [step, isSame && bytes !== undefined ? { ...counts, bytes } : counts];
      }),
    ),
  ]);
  return Object.fromEntries(flows);
}

describe('requests of wallets and backends', () => {
  it('use exactly the database and cryptography calls of test/bench/counts.json', async function () {
    const counted = await countFlows();
    if (counted === undefined) return this.skip();
    const advice = 'if that is meant, `npm run bench -- --count` writes it down';
    expect(counted, advice).to.deep.equal(withBytesOf(readCounts(), counted));
  });
});
