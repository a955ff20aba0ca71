import { expect } from 'chai';
import sinon from 'sinon';
import type { NextTerm, Terms } from '../../../application/ports/terms.ts';
import type { Sighting, Witness } from '../../../application/ports/witness.ts';
import { assertNotRewound, RewindRefusedError } from '../../../application/rewinds/assert-not-rewound.ts';
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
  witnessedCounter: null,
  witnessedIdleChecks: null,
  witnessedBy: null,
};

/** A database whose history a test defines. */
class FakeTerms implements Terms {
  history: History = { terms: [first], place: 'cluster/1', now: NOW, challenges: [] };
  changes = 0;
  supportsPromotion = true;
  isLastThere = true;
  openedTerms: NextTerm[] = [];
  /** True after the last challenge was removed. */
  isChallengeClosed = true;

  async begin() {}
  async read() {
    return this.history;
  }
  async count({ counter }: Position) {
    const [newest, ...rest] = this.history.terms;
    if (newest !== undefined && newest.counter >= counter) this.put({ ...newest, counter: newest.counter + 1 }, ...rest);
    return this.history;
  }
  async open(nextTerm: NextTerm) {
    this.openedTerms.push(nextTerm);
    const counter = this.history.terms[0]?.counter ?? 0;
    const term = { ...first, ...nextTerm, id: `term ${nextTerm.number}`, place: this.history.place, counter, beganAt: NOW };
    this.put(term, ...this.history.terms);
    return true;
  }
  async markLost({ termId }: Position) {
    const terms = this.history.terms.map((term) => (term.id === termId ? { ...term, lostAt: NOW } : term));
    this.put(...terms);
  }
  async markWitnessed({ termId, counter, idleChecks = 0 }: Position, witnessedBy: string) {
    const record = { witnessedCounter: counter, witnessedIdleChecks: idleChecks, witnessedBy };
    const terms = this.history.terms.map((term) =>
      term.id === termId ? { ...term, ...record, witnessedAt: term.witnessedAt ?? NOW } : term,
    );
    this.put(...terms);
  }
  async openChallenge() {
    this.history = { ...this.history, challenges: ['challenge'] };
    return 'challenge';
  }
  async answerChallenges() {
    this.isChallengeClosed = false;
    this.history = { ...this.history, challenges: [] };
  }
  async isAnswered() {
    return this.history.challenges.length === 0;
  }
  async closeChallenge() {
    this.isChallengeClosed = true;
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

class MemoryWitness implements Witness {
  readonly location = '/data/witness.json';
  readonly qualifiedLocation = 'pod-1:/data/witness.json';
  all: Sighting[] = [];
  async sightings() {
    return this.all;
  }
  async note(sighting: Sighting) {
    this.all = [sighting];
  }
  begin = this.note;
}

const noop = () => {};
const log = () => ({ info: noop, warn: noop, error: sinon.spy(), within: <T>(_: unknown, work: () => T) => work(), note: noop });
const sighting = (change: Partial<Sighting> = {}): Sighting => ({ ...positionOf(first), address: ADDRESS, ...change });

describe('start on a database', () => {
  /** @param pause simulates other processes while the start waits */
  const start = (
    terms: FakeTerms,
    sightings: readonly Sighting[],
    accepted?: string,
    pause: (milliseconds: number) => Promise<void> = async () => {},
    report: (line: string) => void = noop,
  ) => {
    const witness = new MemoryWitness();
    witness.all = [...sightings];
    return assertNotRewound({ terms, witness, pause, report }, ADDRESS, accepted).then(
      ({ terms: [newest] }) => newest?.how,
      (error: Error) => {
        if (error instanceof RewindRefusedError) return error.message;
        throw error;
      },
    );
  };
  const movedDatabase = () => {
    const terms = new FakeTerms();
    terms.moveTo('cluster/2');
    return terms;
  };

  it('continues if no data is missing', async () => {
    expect(await start(new FakeTerms(), [])).to.equal('begun');
    expect(await start(new FakeTerms(), [sighting()])).to.equal('begun');
    expect(await start(new FakeTerms(), [sighting({ counter: 4 })])).to.equal('begun');
    expect(await start(new FakeTerms(), [sighting({ lineage: 'elsewhere', address: 'postgres://other' })])).to.equal('begun');
    expect(await start(movedDatabase(), [sighting()]), 'an up-to-date standby').to.equal('promoted');
  });

  const witnessedDatabase = (change: Partial<Term> = {}) => {
    const terms = new FakeTerms();
    terms.put({ ...first, witnessedAt: NOW, ...change });
    return terms;
  };
  /** A running process whose last seen term is `lastSeen`. */
  const createWatch = (terms: FakeTerms, lastSeen: Term = first) => {
    const history = { ...terms.history, terms: [lastSeen] };
    return new RewindWatch({ terms, witness: new MemoryWitness(), log: log(), forget: noop }, ADDRESS, history);
  };

  it('names the file and the remedies if other processes have a record and this machine has none', async () => {
    const terms = witnessedDatabase();
    expect(await start(terms, []))
      .to.include('/data/witness.json has no record')
      .and.to.include('Mount the volume')
      .and.to.include('restore fence')
      .and.to.include('ACCEPT_REWIND=100.5');
    expect(terms.isChallengeClosed, 'the challenge is removed').to.equal(true);
  });

  it('continues without a record when an up-to-date process answers', async () => {
    const terms = witnessedDatabase();
    const watch = createWatch(terms);
    expect(await start(terms, [], undefined, () => watch.tick())).to.equal('begun');
    expect(terms.isChallengeClosed, 'the challenge is removed').to.equal(true);
  });

  it('is rejected when the only running process misses changes', async () => {
    const terms = witnessedDatabase();
    const watch = createWatch(terms, { ...first, counter: 9 });
    const message = await start(terms, [], undefined, () => watch.tick());
    expect(message).to.include('ACCEPT_REWIND=100.5');
    expect(terms.history.terms[0]?.lostAt).to.equal(NOW);
    expect(terms.isChallengeClosed, 'the challenge is removed').to.equal(true);
  });

  it('is rejected if the database was rolled back after a process had answered', async () => {
    const terms = witnessedDatabase();
    const watch = createWatch(terms);
    const message = await start(terms, [], undefined, async () => {
      await watch.tick();
      terms.put({ ...first, lostAt: NOW });
    });
    expect(message).to.include('a process detected');
  });

  it('needs no answer on a database that only one process uses', async () => {
    const terms = witnessedDatabase();
    terms.supportsPromotion = false;
    const openChallenge = sinon.spy(terms, 'openChallenge');
    expect(await start(terms, [])).to.include('has no record');
    expect(openChallenge.callCount).to.equal(0);
  });

  it('accepts a database of an earlier release, and one that an operator has fenced', async () => {
    expect(await start(new FakeTerms(), [])).to.equal('begun');
    for (const beginning of ['fenced', 'accepted'] as const) {
      const terms = new FakeTerms();
      terms.put({ ...first, number: 200, id: 'next', how: beginning }, { ...first, witnessedAt: NOW });
      expect(await start(terms, []), beginning).to.equal(beginning);
    }
  });

  it('is rejected without a record if the database has changed since it was recorded', async () => {
    const terms = new FakeTerms();
    terms.put({ ...first, number: 200, id: 'next', how: 'promoted' }, { ...first, witnessedAt: NOW });
    expect(await start(terms, [])).to.include('has no record');
  });

  it('waits 30 seconds for the answer of a busy process and logs the reason', async () => {
    const terms = witnessedDatabase();
    const watch = createWatch(terms);
    let waitedMs = 0;
    const lines: string[] = [];
    const busyUntil = (busyMs: number) => async (milliseconds: number) => {
      waitedMs += milliseconds;
      if (waitedMs >= busyMs) await watch.tick();
    };
    expect(await start(terms, [], undefined, busyUntil(29_000), (line) => lines.push(line))).to.equal('begun');
    expect(lines).to.have.length(1);
    expect(lines[0]).to.include('30 seconds').and.to.include('another process of the service');
    waitedMs = 0;
    expect(await start(witnessedDatabase(), [], undefined, busyUntil(60_000))).to.include('has no record');
    expect(waitedMs).to.equal(30_000);
  });

  it('stops waiting once another process misses changes', async () => {
    const terms = witnessedDatabase();
    let waits = 0;
    const message = await start(terms, [], undefined, async () => {
      if (++waits === 3) await terms.markLost(positionOf(first));
    });
    expect(message).to.include('a process detected');
    expect(waits).to.equal(3);
  });

  describe('with a record that is older than a later record of another process', () => {
    const WITNESSED_BY = 'pod-0:/data/witness.json';
    const terms = (change: Partial<Term> = {}) =>
      witnessedDatabase({ counter: 9, witnessedCounter: 8, witnessedBy: WITNESSED_BY, ...change });
    const lastSeen = (counter: number) => [sighting({ counter })];

    it('is rejected, names the location of the newest record, and continues after an operator accepts it', async () => {
      for (const counter of [0, 5, 7]) {
        const message = await start(terms(), lastSeen(counter));
        expect(message, String(counter))
          .to.include(`/data/witness.json is out of date: it contains 100.${counter}`)
          .and.to.include(`${WITNESSED_BY} recorded 100.8`)
          .and.to.include('restore fence')
          .and.to.include('ACCEPT_REWIND=100.9');
      }
      expect(await start(terms(), lastSeen(5), '100.9')).to.equal('accepted');
    });

    it('continues when the record is the newest one, also after a crash before the last change was recorded', async () => {
      for (const counter of [8, 9]) expect(await start(terms(), lastSeen(counter))).to.equal('begun');
    });

    it('continues when an up-to-date process answers', async () => {
      const database = terms();
      const watch = createWatch(database, { ...first, counter: 9 });
      expect(await start(database, lastSeen(5), undefined, () => watch.tick())).to.equal('begun');
    });

    it('is rejected when the only running process misses changes', async () => {
      const database = terms();
      const watch = createWatch(database, { ...first, counter: 12 });
      expect(await start(database, lastSeen(5), undefined, () => watch.tick())).to.include('ACCEPT_REWIND');
      expect(database.history.terms[0]?.lostAt).to.equal(NOW);
    });

    it('needs no answer on a database that only one process uses', async () => {
      const database = terms();
      database.supportsPromotion = false;
      const openChallenge = sinon.spy(database, 'openChallenge');
      expect(await start(database, lastSeen(5))).to.include('is out of date');
      expect(openChallenge.callCount).to.equal(0);
    });

    it('is rejected when the database was moved', async () => {
      const database = terms();
      database.moveTo('cluster/2');
      expect(await start(database, lastSeen(5))).to.include('is out of date');
      expect(await start(database, lastSeen(8)), 'with the newest record').to.equal('promoted');
    });

    it('is rejected with a record of a former term, unless an operator fenced the earlier terms', async () => {
      const nextTerm = { ...first, number: 200, id: 'next', counter: 9, witnessedAt: NOW } as const;
      for (const [beginning, outcome] of [
        ['promoted', 'is out of date'],
        ['accepted', 'is out of date'],
        ['fenced', 'is out of date'],
      ] as const) {
        const database = new FakeTerms();
        database.put({ ...nextTerm, how: beginning }, { ...first, counter: 9, witnessedAt: NOW });
        expect(await start(database, lastSeen(9)), beginning).to.include(outcome);
        database.put({ ...nextTerm, how: beginning, witnessedAt: null }, { ...first, counter: 9, witnessedCounter: 9, witnessedAt: NOW });
        expect(await start(database, lastSeen(9)), `${beginning}, not recorded yet`).to.equal(beginning);
        expect(await start(database, lastSeen(8)), `${beginning}, not recorded yet, and an older record`).to.include(
          beginning === 'promoted' ? outcome : beginning,
        );
      }
    });

    it('accepts a database whose earlier release recorded no counter', async () => {
      expect(await start(terms({ witnessedCounter: null, witnessedBy: null }), lastSeen(5))).to.equal('begun');
    });
  });

  it('stops other processes before the decision of an operator takes effect; they continue with empty caches', async () => {
    const terms = new FakeTerms();
    const forget = sinon.spy();
    const otherWatch = new RewindWatch({ terms, witness: new MemoryWitness(), log: log(), forget }, ADDRESS, terms.history);
    const rejections: (string | undefined)[] = [];
    const outcome = await start(terms, [sighting({ counter: 6 })], '100.6', async () => {
      await otherWatch.tick();
      rejections.push(otherWatch.refusal);
    });
    expect(outcome).to.equal('accepted');
    expect(rejections).to.have.length(1);
    expect(rejections[0]).to.include('went back in time');
    await otherWatch.tick();
    expect([otherWatch.refusal, forget.callCount]).to.deep.equal([undefined, 2]);
  });

  it('does not continue if another process began a term during the decision of an operator', async () => {
    const terms = new FakeTerms();
    terms.open = async () => {
      terms.put({ ...first, number: 150, id: 'other', how: 'promoted' }, ...terms.history.terms);
      return false;
    };
    const started = start(terms, [sighting({ counter: 6 })], '100.6');
    expect(await started.catch((error: Error) => error.message)).to.include('Start again');
  });

  it('stops other processes if its record proves missing data', async () => {
    const lostAt = async (change: Partial<Sighting>) => {
      const terms = new FakeTerms();
      expect(await start(terms, [sighting(change)])).to.include('went back in time');
      return terms.history.terms[0]?.lostAt;
    };
    expect(await lostAt({ counter: 6 })).to.equal(NOW);
    expect(await lostAt({ counter: 6, address: 'postgres://other' }), 'a restored copy').to.equal(NOW);
    expect(await lostAt({ term: 120, termId: 'later' })).to.equal(NOW);
    const copyTerm = { term: 120, termId: 'later', address: 'postgres://staging' };
    expect(await lostAt(copyTerm), 'the record is of a copy of this database').to.equal(null);
  });

  it('does not stop other processes without proof of missing data', async () => {
    for (const terms of [witnessedDatabase(), witnessedDatabase({ counter: 9, witnessedCounter: 8 }), movedDatabase()]) {
      const records = terms.history.terms[0]?.counter === 9 ? [sighting()] : [];
      expect(await start(terms, records)).to.include('ACCEPT_REWIND');
      expect(terms.history.terms[0]?.lostAt).to.equal(null);
    }
  });

  const rejectedStarts: readonly [string, () => FakeTerms, readonly Sighting[], string][] = [
    ['that is behind', () => new FakeTerms(), [sighting({ counter: 6 })], '100.6'],
    ['that was restored on another server', movedDatabase, [sighting({ counter: 6 })], '100.6'],
    ['of another term', () => new FakeTerms(), [sighting({ term: 120, termId: 'later' })], '120.5'],
    ['that other processes recorded, without a local record', () => witnessedDatabase(), [], '100.5'],
    ['that moved to an unknown server', movedDatabase, [], '100.5'],
    ['that was created again', () => new FakeTerms(), [sighting({ lineage: 'former', term: 50, counter: 9 })], '50.9'],
    [
      'of which another process has newer data',
      () => {
        const terms = new FakeTerms();
        terms.put({ ...first, lostAt: NOW });
        return terms;
      },
      [sighting()],
      '100.5',
    ],
  ];
  for (const [description, terms, sightings, position] of rejectedStarts) {
    it(`rejects a database ${description}, unless that is accepted`, async () => {
      expect(await start(terms(), sightings))
        .to.include(`ACCEPT_REWIND=${position}`)
        .and.to.include('`npx vidimus restore fence` (in a clone `npm run restore:fence`)');
      expect(await start(terms(), sightings, '1.1')).to.include(`ACCEPT_REWIND=${position}`);
      expect(await start(terms(), sightings, position)).to.equal('accepted');
    });
  }
});

describe('process whose database changes', () => {
  let past: FakeTerms;
  let witness: MemoryWitness;
  let forget: sinon.SinonSpy;
  let watch: RewindWatch;
  beforeEach(() => {
    past = new FakeTerms();
    witness = new MemoryWitness();
    forget = sinon.spy();
    watch = new RewindWatch({ terms: past, witness, log: log(), forget }, ADDRESS, past.history);
  });

  it('writes a record outside of the database from the start, and marks each position once', async () => {
    const mark = sinon.spy(past, 'markWitnessed');
    await watch.recordPosition();
    await watch.tick();
    await watch.tick();
    expect(mark.callCount, 'without changes').to.equal(1);
    expect(witness.all).to.deep.equal([sighting()]);
    expect(past.history.terms[0]?.witnessedAt).to.equal(NOW);
    past.changes++;
    await watch.tick();
    await watch.close();
    expect(mark.callCount).to.equal(2);
    past.put({ ...first, number: 200, id: 'fenced', how: 'fenced' }, ...past.history.terms);
    await watch.close();
    expect(witness.all).to.deep.equal([sighting({ term: 200, termId: 'fenced' })]);
    expect(past.history.terms.map(({ witnessedAt }) => witnessedAt)).to.deep.equal([NOW, NOW]);
  });

  it('records its position in the database after the record file is written', async () => {
    await watch.recordPosition();
    expect(past.history.terms[0]).to.include({ witnessedCounter: 5, witnessedBy: 'pod-1:/data/witness.json' });
    past.changes++;
    witness.note = async () => {
      throw new Error('no space left');
    };
    await watch.tick();
    expect(past.history.terms[0]).to.include({ counter: 6, witnessedCounter: 5 });
    witness.note = MemoryWitness.prototype.note;
    await watch.tick();
    expect(witness.all).to.deep.equal([sighting({ counter: 6 })]);
    expect(past.history.terms[0]).to.include({ counter: 6, witnessedCounter: 6 });
  });

  describe('while it changes nothing', () => {
    let clock: sinon.SinonFakeTimers;
    beforeEach(() => {
      clock = sinon.useFakeTimers({ toFake: ['performance'] });
      watch = new RewindWatch({ terms: past, witness, log: log(), forget }, ADDRESS, past.history);
    });
    afterEach(() => clock.restore());
    const runSeconds = async (seconds: number) => {
      for (let second = 0; second < seconds; second++) {
        clock.tick(1_000);
        await watch.tick();
      }
    };

    it('confirms its record every ten seconds, so that the record of an ended process becomes older', async () => {
      await runSeconds(30);
      const [newest] = past.history.terms;
      expect(newest).to.include({ counter: 5, witnessedCounter: 5, witnessedIdleChecks: 3 });
      expect(witness.all).to.deep.equal([sighting({ idleChecks: 3 })]);
      const former = new MemoryWitness();
      former.all = [sighting({ idleChecks: 2 })];
      const message = await assertNotRewound(
        { terms: past, witness: former, pause: async () => {}, report: noop },
        ADDRESS,
        undefined,
      ).catch((error: Error) => error.message);
      expect(message).to.include('is out of date: it contains 100.5 (check 2)').and.to.include('recorded 100.5 (check 3)');
    });

    it('continues with a standby that has all changes and lacks the last confirmation', async () => {
      await watch.tick();
      const replicated = past.history;
      await runSeconds(10);
      expect(past.history.terms[0]?.witnessedIdleChecks).to.equal(1);
      past.history = { ...replicated, place: 'cluster/2' };
      await watch.tick();
      expect(watch.refusal).to.include('has just taken over');
      expect(past.history.terms[0]).to.include({ how: 'promoted', lostAt: null });
      await runSeconds(4);
      expect(watch.refusal).to.equal(undefined);
    });

    it('starts on a standby that has all changes and lacks the last confirmation', async () => {
      const replicated = past.history;
      await runSeconds(10);
      past.history = { ...replicated, place: 'cluster/2' };
      const { terms } = await assertNotRewound({ terms: past, witness, pause: async () => {}, report: noop }, ADDRESS, undefined);
      expect(terms[0]?.how).to.equal('promoted');
    });

    it('confirms nothing while data is missing', async () => {
      await runSeconds(1);
      const recorded = witness.all;
      past.put({ ...first, counter: 4 });
      await runSeconds(30);
      expect([witness.all, past.history.terms[0]?.witnessedIdleChecks]).to.deep.equal([recorded, null]);
    });
  });

  it('does not mark a term while the record cannot be written', async () => {
    witness.note = async () => {
      throw new Error('no space left');
    };
    await watch.recordPosition();
    expect(past.history.terms[0]?.witnessedAt).to.equal(null);
  });

  it('counts only its own changes', async () => {
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

  it('serves nothing once data is missing, notifies other processes, and clears its caches', async () => {
    past.put({ ...first, counter: 4 });
    past.changes++;
    await watch.tick();
    await watch.tick();
    expect(watch.refusal).to.include('restore:fence');
    expect(past.history.terms[0]).to.include({ lostAt: NOW, counter: 4 });
    expect(forget.callCount).to.equal(1);
    await watch.close();
    expect(witness.all, 'reported by the database').to.deep.equal([]);
  });

  it('reports no loss for a history that it read before later changes', async () => {
    const { history } = past;
    past.changes++;
    await watch.tick();
    await watch.verify(past, history);
    expect([watch.refusal, past.history.terms[0]?.lostAt]).to.deep.equal([undefined, null]);
  });

  it('serves nothing if another process reports missing data', async () => {
    past.put({ ...first, lostAt: NOW });
    await watch.tick();
    expect(watch.refusal).to.include('restore:fence');
  });

  it('continues on a complete standby that took over, if no process objects', async () => {
    past.moveTo('cluster/2');
    await watch.tick();
    expect(past.openedTerms).to.deep.equal([{ after: 100, number: NOW.getTime() / 1000, how: 'promoted' }]);
    expect(watch.refusal).to.include('has just taken over');
    expect(forget.callCount).to.equal(1);
    past.history = { ...past.history, now: new Date(NOW.getTime() + 5_000) };
    const otherWatch = new RewindWatch({ terms: past, witness, log: log(), forget }, ADDRESS, past.history);
    expect(otherWatch.refusal, 'of a later process').to.equal(undefined);
  });

  it('stops when its own last change is missing, although that was not counted', async () => {
    past.moveTo('cluster/2');
    past.isLastThere = false;
    await watch.tick();
    expect(watch.refusal).to.include('restore:fence');
    expect(past.openedTerms).to.deep.equal([]);
    expect(past.history.terms[0]?.lostAt).to.equal(NOW);
  });

  it('stops when another process has begun the term', async () => {
    past.moveTo('cluster/2');
    past.put({ ...first, number: 200, id: 'next', place: 'cluster/2', how: 'promoted' }, { ...first, counter: 4 });
    await watch.tick();
    expect(watch.refusal).to.include('restore:fence');
  });

  it('never continues with a file that was replaced, and leaves the record for the next start', async () => {
    past.supportsPromotion = false;
    past.moveTo('file/2');
    await watch.tick();
    expect(watch.refusal).to.include('restore:fence');
    expect(witness.all).to.deep.equal([sighting({ counter: 6 })]);
  });

  it('continues once it is connected to the complete database again', async () => {
    const { history } = past;
    past.moveTo('cluster/2');
    past.put({ ...first, counter: 4 });
    await watch.tick();
    expect(watch.refusal).to.include('restore:fence');
    past.history = history;
    await watch.tick();
    expect(watch.refusal).to.equal(undefined);
  });

  it('continues after a fence, also by another process', async () => {
    past.moveTo('cluster/2');
    past.put({ ...first, counter: 4 });
    await watch.tick();
    expect(watch.refusal).to.include('restore:fence');
    past.isLastThere = false;
    const fenced = { ...first, number: 300, id: 'fenced', place: 'cluster/2', how: 'fenced', beganAt: NOW } as const;
    past.put(fenced, { ...first, counter: 4, lostAt: NOW });
    await watch.tick();
    expect([watch.refusal, watch.fencedAt]).to.deep.equal([undefined, NOW]);
    expect(forget.callCount).to.equal(2);
  });
});
