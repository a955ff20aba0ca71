import { expect } from 'chai';
import { CounterReserve } from '../../../domain/status-lists/counter-reserve.ts';

describe('a reserve of counters', () => {
  it('hands out what it was given, each once', () => {
    const reserve = new CounterReserve(8);
    reserve.add(10, 20);
    expect([reserve.take(4), reserve.take(4), reserve.take(4), reserve.take(2)]).to.deep.equal([
      10,
      14,
      undefined,
      18,
    ]);
    expect(reserve.take(1)).to.equal(undefined);
  });

  it('joins what comes back in whichever order', () => {
    const reserve = new CounterReserve(8);
    for (const first of [20, 0, 30, 10]) reserve.add(first, first + 10);
    expect(reserve.take(40)).to.equal(0);
    reserve.add(5, 5);
    expect(reserve.take(1), 'nothing is nothing').to.equal(undefined);
    reserve.add(0, 10);
    reserve.add(5, 5);
    expect([reserve.take(10), reserve.take(1)]).to.deep.equal([0, undefined]);
    reserve.add(5, 15);
    expect(reserve.take(10), 'where others were before').to.equal(5);
  });

  it('tells how many it keeps below a counter', () => {
    const reserve = new CounterReserve(8);
    reserve.add(10, 20);
    reserve.add(30, 40);
    const counts = [0, 10, 15, 20, 30, 31, 40, 50].map((end) => reserve.countBelow(end));
    expect(counts).to.deep.equal([0, 0, 5, 10, 10, 11, 20, 20]);
    reserve.take(4);
    expect(reserve.countBelow(40)).to.equal(16);
  });

  it('keeps no counter twice, which two credentials would share', () => {
    const reserve = new CounterReserve(8);
    reserve.add(0, 10);
    for (const [first, end] of [
      [0, 10],
      [9, 12],
      [3, 4],
    ] as const)
      expect(() => reserve.add(first, end), `${first} to ${end}`).to.throw('kept already');
    expect([reserve.take(10), reserve.take(1)]).to.deep.equal([0, undefined]);
  });

  it('is bounded, and forgets the shortest rest first', () => {
    const reserve = new CounterReserve(2);
    reserve.add(0, 5);
    reserve.add(10, 11);
    reserve.add(20, 23);
    expect([reserve.take(5), reserve.take(3), reserve.take(1)]).to.deep.equal([0, 20, undefined]);
  });
});
