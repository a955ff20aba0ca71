import { expect } from 'chai';
import sinon from 'sinon';
import type { NextTerm, Terms } from '../../../application/ports/terms.ts';
import type { Sighting, Witness } from '../../../application/ports/witness.ts';
import { checkRewind, RewindRefused } from '../../../application/rewinds/check-rewind.ts';
import { RewindWatch } from '../../../application/rewinds/rewind-watch.ts';
import { type History, type Position, positionOf, type Term } from '../../../domain/rewinds/term.ts';

const NOW = new Date('2026-11-24T12:00:00Z');
const ADDRESS = 'postgres://database';
const first: Term = {
  number: 100,
  id: 'first',
  lineage: 'service',
  place: 'cluster/1',
  counter: 5,
  beganAt: new Date(100_000),
  how: 'begun',
  lostAt: null,
  listFloor: 0,
  witnessedAt: null,
};

/** A database whose past a test writes. */
class Past implements Terms {
  history: History = { terms: [first], place: 'cluster/1', now: NOW, challenges: [] };
  changes = 0;
  moves = true;
  isLastThere = true;
  opened: NextTerm[] = [];
  /** Whether the last challenge was removed. */
  closed = true;

  async begin() {}
  async read() {
    return this.history;
  }
  async count({ counter }: Position) {
    const [newest, ...rest] = this.history.terms;
    if (newest !== undefined && newest.counter >= counter)
      this.put({ ...newest, counter: newest.counter + 1 }, ...rest);
    return this.history;
  }
  async open(next: NextTerm) {
    this.opened.push(next);
    const counter = this.history.terms[0]?.counter ?? 0;
    const begun = {
      ...first,
      ...next,
      id: `term ${next.number}`,
      place: this.history.place,
      counter,
      beganAt: NOW,
    };
    this.put(begun, ...this.history.terms);
    return true;
  }
  async markLost() {
    const [newest, ...rest] = this.history.terms;
    if (newest !== undefined) this.put({ ...newest, lostAt: NOW }, ...rest);
  }
  async markWitnessed({ termId }: Position) {
    const terms = this.history.terms.map((term) =>
      term.id === termId ? { ...term, witnessedAt: NOW } : term,
    );
    this.put(...terms);
  }
  async openChallenge() {
    this.history = { ...this.history, challenges: ['challenge'] };
    return 'challenge';
  }
  async answerChallenges() {
    this.closed = false;
    this.history = { ...this.history, challenges: [] };
  }
  async isAnswered() {
    return this.history.challenges.length === 0;
  }
  async closeChallenge() {
    this.closed = true;
  }
  async hasLastChange() {
    return this.isLastThere;
  }
  put(...terms: Term[]) {
    this.history = { ...this.history, terms };
  }
  moveTo(place: string) {
    this.history = { ...this.history, place };
  }
}

class Memory implements Witness {
  readonly place = '/data/witness.json';
  all: Sighting[] = [];
  async sightings() {
    return this.all;
  }
  async note(sighting: Sighting) {
    this.all = [sighting];
  }
  begin = this.note;
}

const nothing = () => {};
const log = () => ({
  info: nothing,
  warn: nothing,
  error: sinon.spy(),
  within: <T>(_: unknown, work: () => T) => work(),
  note: nothing,
});
const sighting = (change: Partial<Sighting> = {}): Sighting => ({
  ...positionOf(first),
  address: ADDRESS,
  ...change,
});

describe('a start on a database', () => {
  /** @param meanwhile what other processes do while the start waits. */
  const start = (
    terms: Past,
    all: readonly Sighting[],
    accepted?: string,
    meanwhile: () => Promise<void> = async () => {},
  ) => {
    const witness = new Memory();
    witness.all = [...all];
    return checkRewind({ terms, witness, pause: meanwhile }, ADDRESS, accepted).then(
      ({ terms: [newest] }) => newest?.how,
      (error: Error) => {
        if (error instanceof RewindRefused) return error.message;
        throw error;
      },
    );
  };
  const moved = () => {
    const past = new Past();
    past.moveTo('cluster/2');
    return past;
  };

  it('goes on where everything is there', async () => {
    expect(await start(new Past(), [])).to.equal('begun');
    expect(await start(new Past(), [sighting()])).to.equal('begun');
    expect(await start(new Past(), [sighting({ counter: 4 })])).to.equal('begun');
    expect(
      await start(new Past(), [sighting({ lineage: 'elsewhere', address: 'postgres://other' })]),
    ).to.equal('begun');
    expect(await start(moved(), [sighting()]), 'a standby that has everything').to.equal('promoted');
  });

  const witnessed = (change: Partial<Term> = {}) => {
    const past = new Past();
    past.put({ ...first, witnessedAt: NOW, ...change });
    return past;
  };
  /** A process that lives and has seen `seen`. */
  const watching = (past: Past, seen: Term = first) => {
    const history = { ...past.history, terms: [seen] };
    return new RewindWatch(
      { terms: past, witness: new Memory(), log: log(), forget: nothing },
      ADDRESS,
      history,
    );
  };

  it('names the file and the remedies where processes kept a record of the database and this machine has none', async () => {
    const past = witnessed();
    expect(await start(past, []))
      .to.include('/data/witness.json has no record')
      .and.to.include('Mount the volume')
      .and.to.include('restore fence')
      .and.to.include('ACCEPT_REWIND=100.5');
    expect(past.closed, 'the challenge is removed').to.equal(true);
  });

  it('goes on without a record of its own when a process that misses nothing answers', async () => {
    const past = witnessed();
    const watch = watching(past);
    expect(await start(past, [], undefined, () => watch.tick())).to.equal('begun');
    expect(past.closed, 'the challenge is removed').to.equal(true);
  });

  it('is refused when the only process that lives misses something', async () => {
    const past = witnessed();
    const watch = watching(past, { ...first, counter: 9 });
    const message = await start(past, [], undefined, () => watch.tick());
    expect(message).to.include('ACCEPT_REWIND=100.5');
    expect(past.history.terms[0]?.lostAt).to.equal(NOW);
    expect(past.closed, 'the challenge is removed').to.equal(true);
  });

  it('is refused when the database went back after a process had answered', async () => {
    const past = witnessed();
    const watch = watching(past);
    const message = await start(past, [], undefined, async () => {
      await watch.tick();
      past.put({ ...first, lostAt: NOW });
    });
    expect(message).to.include('a process noticed');
  });

  it('asks nobody on a database that one process has for itself', async () => {
    const past = witnessed();
    past.moves = false;
    const open = sinon.spy(past, 'openChallenge');
    expect(await start(past, [])).to.include('has no record');
    expect(open.callCount).to.equal(0);
  });

  it('takes a database over that an earlier release served, and one that an operator has settled', async () => {
    expect(await start(new Past(), [])).to.equal('begun');
    for (const how of ['fenced', 'accepted'] as const) {
      const past = new Past();
      past.put({ ...first, number: 200, id: 'next', how }, { ...first, witnessedAt: NOW });
      expect(await start(past, []), how).to.equal(how);
    }
  });

  it('is refused without a record when the database moved on since it was witnessed', async () => {
    const past = new Past();
    past.put({ ...first, number: 200, id: 'next', how: 'promoted' }, { ...first, witnessedAt: NOW });
    expect(await start(past, [])).to.include('has no record');
  });

  const refused: readonly [string, () => Past, readonly Sighting[], string][] = [
    ['that is behind', () => new Past(), [sighting({ counter: 6 })], '100.6'],
    ['that was put back elsewhere', moved, [sighting({ counter: 6 })], '100.6'],
    ['of another term', () => new Past(), [sighting({ term: 120, termId: 'later' })], '120.5'],
    ['that processes kept a record of, where there is none', () => witnessed(), [], '100.5'],
    ['that is elsewhere, where nobody has seen it', moved, [], '100.5'],
    ['that began anew', () => new Past(), [sighting({ lineage: 'former', term: 50, counter: 9 })], '50.9'],
    [
      'of which another process misses something',
      () => {
        const past = new Past();
        past.put({ ...first, lostAt: NOW });
        return past;
      },
      [sighting()],
      '100.5',
    ],
  ];
  for (const [name, past, all, position] of refused) {
    it(`refuses one ${name}, unless that is accepted`, async () => {
      expect(await start(past(), all))
        .to.include(`ACCEPT_REWIND=${position}`)
        .and.to.include('`npx vidimus restore fence` (in a clone `npm run restore:fence`)');
      expect(await start(past(), all, '1.1')).to.include(`ACCEPT_REWIND=${position}`);
      expect(await start(past(), all, position)).to.equal('accepted');
    });
  }
});

describe('a process whose database changes', () => {
  let past: Past;
  let witness: Memory;
  let forget: sinon.SinonSpy;
  let watch: RewindWatch;
  beforeEach(() => {
    past = new Past();
    witness = new Memory();
    forget = sinon.spy();
    watch = new RewindWatch({ terms: past, witness, log: log(), forget }, ADDRESS, past.history);
  });

  it('keeps a record outside of the database from the start, and marks each term once', async () => {
    const mark = sinon.spy(past, 'markWitnessed');
    await watch.testify();
    expect(witness.all).to.deep.equal([sighting()]);
    expect(past.history.terms[0]?.witnessedAt).to.equal(NOW);
    past.changes++;
    await watch.tick();
    await watch.close();
    expect(mark.callCount).to.equal(1);
    past.put({ ...first, number: 200, id: 'fenced', how: 'fenced' }, ...past.history.terms);
    await watch.close();
    expect(witness.all).to.deep.equal([sighting({ term: 200, termId: 'fenced' })]);
    expect(past.history.terms.map(({ witnessedAt }) => witnessedAt)).to.deep.equal([NOW, NOW]);
  });

  it('does not mark a term while the record cannot be written', async () => {
    witness.note = async () => {
      throw new Error('no space left');
    };
    await watch.testify();
    expect(past.history.terms[0]?.witnessedAt).to.equal(null);
  });

  it('counts what it changes, and nothing while it changes nothing', async () => {
    await watch.tick();
    expect(past.history.terms[0]?.counter).to.equal(5);
    past.changes++;
    await watch.tick();
    await watch.tick();
    expect(past.history.terms[0]?.counter).to.equal(6);
    await watch.close();
    expect(witness.all).to.deep.equal([sighting({ counter: 6 })]);
    expect([watch.refusal, forget.callCount]).to.deep.equal([undefined, 0]);
  });

  it('gives nothing away once something is missing, tells the others, and remembers nothing', async () => {
    past.put({ ...first, counter: 4 });
    past.changes++;
    await watch.tick();
    await watch.tick();
    expect(watch.refusal).to.include('restore:fence');
    expect(past.history.terms[0]).to.include({ lostAt: NOW, counter: 4 });
    expect(forget.callCount).to.equal(1);
    await watch.close();
    expect(witness.all, 'the database says so itself').to.deep.equal([]);
  });

  it('misses nothing in what it read before it had seen more', async () => {
    const { history } = past;
    past.changes++;
    await watch.tick();
    await watch.look(past, history);
    expect([watch.refusal, past.history.terms[0]?.lostAt]).to.deep.equal([undefined, null]);
  });

  it('gives nothing away when another process misses something', async () => {
    past.put({ ...first, lostAt: NOW });
    await watch.tick();
    expect(watch.refusal).to.include('restore:fence');
  });

  it('goes on where a standby took over that has everything, once nobody has objected', async () => {
    past.moveTo('cluster/2');
    await watch.tick();
    expect(past.opened).to.deep.equal([{ after: 100, number: NOW.getTime() / 1000, how: 'promoted' }]);
    expect(watch.refusal).to.include('has just taken over');
    expect(forget.callCount).to.equal(1);
    past.history = { ...past.history, now: new Date(NOW.getTime() + 5_000) };
    const other = new RewindWatch({ terms: past, witness, log: log(), forget }, ADDRESS, past.history);
    expect(other.refusal, 'of a process that comes later').to.equal(undefined);
  });

  it('does not go on where its own last change is missing, although that was not counted', async () => {
    past.moveTo('cluster/2');
    past.isLastThere = false;
    await watch.tick();
    expect(watch.refusal).to.include('restore:fence');
    expect(past.opened).to.deep.equal([]);
    expect(past.history.terms[0]?.lostAt).to.equal(NOW);
  });

  it('does not go on where another process has begun the term', async () => {
    past.moveTo('cluster/2');
    past.put(
      { ...first, number: 200, id: 'next', place: 'cluster/2', how: 'promoted' },
      { ...first, counter: 4 },
    );
    await watch.tick();
    expect(watch.refusal).to.include('restore:fence');
  });

  it('never goes on with a file that another one has taken the name of, and tells the next start', async () => {
    past.moves = false;
    past.moveTo('file/2');
    await watch.tick();
    expect(watch.refusal).to.include('restore:fence');
    expect(witness.all).to.deep.equal([sighting({ counter: 6 })]);
  });

  it('goes on where it is led back to the database that has everything', async () => {
    const { history } = past;
    past.moveTo('cluster/2');
    past.put({ ...first, counter: 4 });
    await watch.tick();
    expect(watch.refusal).to.include('restore:fence');
    past.history = history;
    await watch.tick();
    expect(watch.refusal).to.equal(undefined);
  });

  it('goes on once it was fenced, also elsewhere', async () => {
    past.moveTo('cluster/2');
    past.put({ ...first, counter: 4 });
    await watch.tick();
    expect(watch.refusal).to.include('restore:fence');
    past.isLastThere = false;
    const fenced = {
      ...first,
      number: 300,
      id: 'fenced',
      place: 'cluster/2',
      how: 'fenced',
      beganAt: NOW,
    } as const;
    past.put(fenced, { ...first, counter: 4, lostAt: NOW });
    await watch.tick();
    expect([watch.refusal, watch.fencedAt]).to.deep.equal([undefined, NOW]);
    expect(forget.callCount).to.equal(2);
  });
});
