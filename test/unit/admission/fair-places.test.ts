import { expect } from 'chai';
import { FairPlaces, type Place, type Waiter } from '../../../adapters/http/fair-places.ts';

const LIMITS = { least: 4, most: 4, keptForOthers: 1, waitingOfOne: 5, patienceMs: 1_000, longMs: 100 };

/** Places whose time is told, and a list of what happened to those that asked for one. */
function world(limits: Partial<typeof LIMITS> = {}) {
  const clock = { now: 0 };
  const places = new FairPlaces({ ...LIMITS, ...limits }, () => clock.now);
  const happened: string[] = [];
  const held = new Map<string, Place>();
  const waiters = new Map<string, Waiter>();
  const got = (name: string) => (place: Place) => {
    happened.push(name);
    held.set(name, place);
  };
  /** @param name the party and a number, as in `a1`. */
  const come = (name: string) => {
    const party = name.slice(0, 1);
    const place = places.enter(party);
    if (place !== undefined) return got(name)(place);
    const refuse = () => happened.push(`${name} refused`);
    const waiter = places.wait(party, { admit: got(name), refuse });
    if (waiter === undefined) refuse();
    else waiters.set(name, waiter);
  };
  return {
    clock,
    places,
    come: (...names: string[]) => names.forEach(come),
    leave: (...names: string[]) => places.leave(names.map((name) => held.get(name) as Place)),
    comeBack: (name: string) => {
      const place = places.enterAgain(name.slice(0, 1), got(name));
      if (place !== undefined) got(name)(place);
    },
    goAway: (name: string) => places.forget(waiters.get(name) as Waiter),
    /** What happened since this was last asked. */
    happened: () => happened.splice(0),
  };
}

describe('Places that are shared out', () => {
  it('are given at once while there are any, but for those that one party does not have to itself', () => {
    const { come, happened } = world();
    come('a1', 'a2', 'a3', 'a4', 'b1');
    expect(happened()).to.deep.equal(['a1', 'a2', 'a3', 'b1']);
  });

  it('go to the party that comes late before all that another one has waiting', () => {
    const { come, leave, happened } = world();
    come('a1', 'a2', 'a3', 'b1', 'a4', 'a5', 'a6', 'a7', 'b2', 'b3');
    expect(happened()).to.deep.equal(['a1', 'a2', 'a3', 'b1']);
    leave('a1');
    expect(happened(), 'two of each').to.deep.equal(['b2']);
    leave('a2');
    expect(happened(), 'of the one that has fewer').to.deep.equal(['a4']);
    leave('a3');
    expect(happened()).to.deep.equal(['a5']);
    leave('b1');
    expect(happened()).to.deep.equal(['b3']);
  });

  it('go round between parties that have equally many, however many of them wait', () => {
    const { come, leave, happened } = world({ least: 1, most: 1, keptForOthers: 0 });
    come('a1', 'a2', 'a3', 'a4', 'b1', 'c1', 'b2');
    const order: string[] = [];
    for (let next = happened()[0]; next !== undefined; next = happened()[0]) {
      order.push(next);
      leave(next);
    }
    expect(order).to.deep.equal(['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4']);
  });

  it('come to the party with the most, too, while others never stop coming', () => {
    const { come, leave, happened } = world({ least: 1, most: 1, keptForOthers: 0 });
    come('x1', 'a1', 'a2', 'a3', 'a4', 'a5');
    let inside = happened()[0] as string;
    const admitted: string[] = [];
    for (let i = 0; i < 20; i++) {
      // One comes anew in each round, from a party that has nobody waiting.
      come(`${'bcd'[i % 3]}${i}`);
      leave(inside);
      [inside = ''] = happened();
      admitted.push(inside);
    }
    expect(admitted.filter((name) => name.startsWith('a'))).to.deep.equal(['a1', 'a2', 'a3', 'a4', 'a5']);
  });

  it('are of no use to a party beyond its share, though they are free', () => {
    const { come, leave, happened } = world();
    come('a1', 'a2', 'a3', 'a4', 'b1');
    happened();
    leave('b1');
    expect(happened()).to.deep.equal([]);
    leave('a1');
    expect(happened()).to.deep.equal(['a4']);
  });

  it('are waited for by so many of one party, which leaves the queues of others as they are', () => {
    const { come, happened } = world();
    come('a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7', 'a8', 'a9', 'b1', 'b2');
    expect(happened()).to.deep.equal(['a1', 'a2', 'a3', 'a9 refused', 'b1']);
  });

  it('are not kept for one that went away while it waited', () => {
    const { come, leave, goAway, happened, places } = world();
    come('a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7', 'a8');
    goAway('a4');
    goAway('a4');
    expect(places.waitingCount).to.equal(4);
    come('a9');
    happened();
    leave('a1');
    expect(happened()).to.deep.equal(['a5']);
  });

  it('are refused to one that waited for too long, and to nobody else', () => {
    const { come, clock, places, happened } = world();
    come('a1', 'a2', 'a3', 'a4');
    clock.now = 600;
    come('a5');
    happened();
    clock.now = 999;
    places.sweep(false);
    expect(happened()).to.deep.equal([]);
    clock.now = 1_000;
    places.sweep(false);
    expect(happened()).to.deep.equal(['a4 refused']);
    expect(places.waitingCount).to.equal(1);
  });

  it('are taken from those that have them for long, only while there is nothing to do', () => {
    const { come, leave, clock, places, happened } = world();
    come('a1', 'a2');
    clock.now = 50;
    come('a3', 'b1', 'b2', 'a4');
    happened();
    clock.now = 100;
    places.sweep(false);
    expect(happened(), 'the thread works').to.deep.equal([]);
    places.sweep(true);
    expect(happened()).to.deep.equal(['a4', 'b2']);
    leave('a1', 'a2');
    come('c1');
    expect(happened(), 'what was taken is not given back again').to.deep.equal([]);
  });
});

describe('The number of places', () => {
  it('grows while some wait and the thread has time, and shrinks again when it has none', () => {
    const { come, leave, places, happened } = world({ most: 6 });
    come('a1', 'a2', 'a3', 'b1', 'b2', 'b3', 'b4', 'b5');
    happened();
    places.sweep(false);
    expect(happened()).to.deep.equal([]);
    for (const name of ['b2', 'b3']) {
      places.sweep(true);
      expect(happened()).to.deep.equal([name]);
    }
    places.sweep(true);
    expect(happened(), 'no more than there may be').to.deep.equal([]);
    places.sweep(false);
    leave('b1');
    expect(happened()).to.deep.equal([]);
    leave('b2');
    expect(happened()).to.deep.equal(['b4']);
  });

  it('bounds what one party has, too', () => {
    const { come, places, happened } = world({ most: 5 });
    come('a1', 'a2', 'a3', 'a4', 'a5');
    expect(happened()).to.have.length(3);
    places.sweep(true);
    expect(happened()).to.deep.equal(['a4']);
  });
});

describe('One that had a place and comes back', () => {
  it('goes before all of its party, and not before another party that has fewer places', () => {
    const { come, comeBack, leave, happened } = world();
    come('a1', 'a2', 'a3', 'b1', 'a4', 'b2');
    happened();
    leave('a1');
    expect(happened()).to.deep.equal(['b2']);
    come('b3');
    comeBack('a1');
    leave('b2');
    expect(happened()).to.deep.equal(['b3']);
    leave('a2');
    expect(happened()).to.deep.equal(['a1']);
  });

  it('is let in beyond all places where only its party waits, since they may wait for what it brings', () => {
    const { come, comeBack, happened } = world();
    come('b1', 'a1', 'a2', 'a3', 'a4');
    happened();
    comeBack('a9');
    expect(happened()).to.deep.equal(['a9']);
  });

  it('waits where very many come back at once', () => {
    const { comeBack, come, leave, happened } = world();
    comeBack('a0');
    for (let i = 1; i < 12; i++) comeBack(`a${i}`);
    expect(happened()).to.have.length(2 * LIMITS.least);
    come('b1');
    expect(happened()).to.deep.equal([]);
    leave('a0', 'a1', 'a2', 'a3', 'a4');
    expect(happened()).to.deep.equal(['b1']);
  });

  it('is never refused', () => {
    const { come, comeBack, clock, places, leave, happened } = world();
    come('a1', 'a2', 'a3', 'b1', 'b2');
    comeBack('a9');
    happened();
    clock.now = 60_000;
    places.sweep(false);
    expect(happened()).to.deep.equal(['b2 refused']);
    leave('a1');
    expect(happened()).to.deep.equal(['a9']);
  });
});
