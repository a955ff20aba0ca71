import { expect } from 'chai';
import { SteadyTime } from '../../../adapters/persistence/sqlite/steady-time.ts';

const START = Date.parse('2031-01-01T00:00:00Z');
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** A machine whose system clock can be changed while time passes. */
function createMachine() {
  let elapsed = 1_000;
  let ahead = START - elapsed;
  return {
    clocks: { wall: () => elapsed + ahead, elapsed: () => elapsed },
    passes: (milliseconds: number) => {
      elapsed += milliseconds;
    },
    setForward: (offsetMs: number) => {
      ahead += offsetMs;
    },
  };
}

describe('time of a database with one process', () => {
  const start = (stored?: number) => {
    const { clocks, passes, setForward } = createMachine();
    const time = new SteadyTime(stored, clocks);
    const reading = () => (time.now() - START) / MINUTE;
    /** @returns one reading per minute. */
    const minutes = (count: number) =>
      Array.from({ length: count }, () => {
        passes(MINUTE);
        return reading();
      });
    return { time, passes, setForward, reading, minutes };
  };

  it('advances with the system clock', () => {
    const { minutes, setForward, reading } = start();
    expect(minutes(3)).to.deep.equal([1, 2, 3]);
    setForward(3_000);
    expect(reading()).to.equal(3.05);
  });

  it('does not go back when the system clock is set back a little', () => {
    const { time, setForward, passes } = start();
    setForward(-3_000);
    expect([time.now(), time.now()]).to.deep.equal([START - 3_000, START - 3_000]);
    passes(1_000);
    const before = time.now();
    setForward(-2_000);
    expect(time.now()).to.equal(before);
    passes(5_000);
    expect(time.now()).to.equal(before + 3_000);
  });

  for (const hours of [3, -3]) {
    const direction = hours > 0 ? 'ahead' : 'behind';
    it(`ignores a system clock that is ${direction} for some minutes`, () => {
      const { setForward, minutes } = start();
      setForward(hours * HOUR);
      expect(minutes(14).at(-1)).to.equal(14);
      setForward(-hours * HOUR);
      expect(minutes(30).at(-1)).to.equal(44);
      setForward(hours * HOUR);
      expect(minutes(14).at(-1), 'the second time').to.equal(58);
    });

    it(`follows a system clock that has been ${direction} for a quarter of an hour`, () => {
      const { setForward, minutes } = start();
      setForward(hours * HOUR);
      expect(minutes(15).at(-1)).to.equal(15);
      expect(minutes(2).at(-1)).to.equal(17 + hours * 60);
    });
  }

  it('ignores a system clock that jumps repeatedly', () => {
    const { setForward, minutes } = start();
    for (let n = 1; n <= 10; n++) {
      setForward(HOUR);
      expect(minutes(10).at(-1)).to.equal(n * 10);
    }
  });

  it('starts from the stored time, until the system clock was consistent for a quarter of an hour', () => {
    for (const [stored, hours] of [
      [START - 5 * HOUR, -5],
      [START + 5 * HOUR, 5],
    ] as const) {
      const { minutes, reading } = start(stored);
      expect(reading()).to.equal(hours * 60);
      expect(minutes(10).at(-1)).to.equal(hours * 60 + 10);
      expect(minutes(10).at(-1)).to.equal(20);
    }
  });

  it('reports a pause of the service, and a clock that is wrong for another reason', () => {
    const rested = start(START - 100_000);
    rested.reading();
    expect(rested.time.isCatchingUp).to.equal(true);
    rested.minutes(10);
    expect(rested.time.isCatchingUp).to.equal(true);
    rested.minutes(10);
    expect(rested.time.isCatchingUp).to.equal(false);
    rested.setForward(HOUR);
    rested.reading();
    expect(rested.time.isCatchingUp, 'a jump of the clock').to.equal(false);

    const slowClock = start(START + HOUR);
    slowClock.reading();
    expect(slowClock.time.isCatchingUp, 'a slow clock').to.equal(false);
    const fresh = start();
    fresh.reading();
    expect(fresh.time.isCatchingUp).to.equal(false);
  });

  it('uses the system clock immediately after a short pause', () => {
    const { reading } = start(START - 4_000);
    expect(reading()).to.equal(0);
  });
});
