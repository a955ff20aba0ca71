import { expect } from 'chai';
import { SteadyTime } from '../../../adapters/persistence/sqlite/steady-time.ts';

const START = Date.parse('2031-01-01T00:00:00Z');
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** A machine whose time of day is set at will, while time passes. */
function machine() {
  let elapsed = 1_000;
  let ahead = START - elapsed;
  return {
    clocks: { wall: () => elapsed + ahead, elapsed: () => elapsed },
    passes: (milliseconds: number) => {
      elapsed += milliseconds;
    },
    isSet: (by: number) => {
      ahead += by;
    },
  };
}

describe('time of a database with one process', () => {
  const begin = (stored?: number) => {
    const { clocks, passes, isSet } = machine();
    const time = new SteadyTime(stored, clocks);
    const reading = () => (time.now() - START) / MINUTE;
    /** @returns readings, one for each minute. */
    const minutes = (count: number) =>
      Array.from({ length: count }, () => {
        passes(MINUTE);
        return reading();
      });
    return { time, passes, isSet, reading, minutes };
  };

  it('advances with the system clock', () => {
    const { minutes, isSet, reading } = begin();
    expect(minutes(3)).to.deep.equal([1, 2, 3]);
    isSet(3_000);
    expect(reading()).to.equal(3.05);
  });

  it('does not go back when the system clock is set back a little', () => {
    const { time, isSet, passes } = begin();
    isSet(-3_000);
    expect([time.now(), time.now()]).to.deep.equal([START - 3_000, START - 3_000]);
    passes(1_000);
    const before = time.now();
    isSet(-2_000);
    expect(time.now()).to.equal(before);
    passes(5_000);
    expect(time.now()).to.equal(before + 3_000);
  });

  for (const hours of [3, -3]) {
    const way = hours > 0 ? 'ahead' : 'behind';
    it(`ignores a system clock that is ${way} for some minutes`, () => {
      const { isSet, minutes } = begin();
      isSet(hours * HOUR);
      expect(minutes(14).at(-1)).to.equal(14);
      isSet(-hours * HOUR);
      expect(minutes(30).at(-1)).to.equal(44);
      isSet(hours * HOUR);
      expect(minutes(14).at(-1), 'the second time').to.equal(58);
    });

    it(`follows a system clock that has been ${way} for a quarter of an hour`, () => {
      const { isSet, minutes } = begin();
      isSet(hours * HOUR);
      expect(minutes(15).at(-1)).to.equal(15);
      expect(minutes(2).at(-1)).to.equal(17 + hours * 60);
    });
  }

  it('ignores a system clock that jumps repeatedly', () => {
    const { isSet, minutes } = begin();
    for (let n = 1; n <= 10; n++) {
      isSet(HOUR);
      expect(minutes(10).at(-1)).to.equal(n * 10);
    }
  });

  it('starts from the stored time, until the system clock was consistent for a quarter of an hour', () => {
    for (const [stored, hours] of [
      [START - 5 * HOUR, -5],
      [START + 5 * HOUR, 5],
    ] as const) {
      const { minutes, reading } = begin(stored);
      expect(reading()).to.equal(hours * 60);
      expect(minutes(10).at(-1)).to.equal(hours * 60 + 10);
      expect(minutes(10).at(-1)).to.equal(20);
    }
  });

  it('reports a pause of the service, and a clock that is wrong for another reason', () => {
    const rested = begin(START - 100_000);
    rested.reading();
    expect(rested.time.isCatchingUp).to.equal(true);
    rested.minutes(10);
    expect(rested.time.isCatchingUp).to.equal(true);
    rested.minutes(10);
    expect(rested.time.isCatchingUp).to.equal(false);
    rested.isSet(HOUR);
    rested.reading();
    expect(rested.time.isCatchingUp, 'a jump of the clock').to.equal(false);

    const behind = begin(START + HOUR);
    behind.reading();
    expect(behind.time.isCatchingUp, 'a clock that is behind').to.equal(false);
    const fresh = begin();
    fresh.reading();
    expect(fresh.time.isCatchingUp).to.equal(false);
  });

  it('uses the system clock immediately after a short pause', () => {
    const { reading } = begin(START - 4_000);
    expect(reading()).to.equal(0);
  });
});
