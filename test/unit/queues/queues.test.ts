import { expect } from 'chai';
import fc from 'fast-check';
import { FairQueue, type Slot } from '../../../application/queues/fair-queue.ts';
import { createKeyedQueue } from '../../../application/queues/keyed-queue.ts';
import { Failure } from '../../../domain/shared/failure.ts';

const FULL = new Error('too many calls wait');

type Limits = { slots: number; slotsPerKey: number; waitingPerKey: number; waiting: number };
type Call = {
  readonly party: string;
  readonly abort: AbortController;
  state: 'waiting' | 'held' | 'left' | 'refused' | 'aborted';
  slot?: Slot;
};
/** The state just before a waiting call was admitted. */
type Admission = { readonly call: Call; readonly waiting: readonly Call[]; readonly held: readonly Call[] };
type Step =
  | { readonly kind: 'enter'; readonly party: string }
  | { readonly kind: 'leave' | 'abort'; readonly index: number }
  | { readonly kind: 'resize'; readonly slots: number };

/** Performs steps on a queue and records the expected state. */
class Model {
  readonly queue: FairQueue;
  readonly limits: Limits;
  readonly calls: Call[] = [];
  readonly admissions: Admission[] = [];
  /** The number of held slots before the last step. */
  heldBefore = 0;

  constructor(limits: Limits) {
    this.limits = { ...limits };
    this.queue = new FairQueue(
      limits,
      () => FULL,
      () => 0,
    );
  }

  in(state: Call['state'], party?: string): readonly Call[] {
    return this.calls.filter((call) => call.state === state && (party ?? call.party) === call.party);
  }

  async perform(step: Step): Promise<void> {
    this.heldBefore = this.queue.heldCount;
    if (step.kind === 'enter') this.enter(step.party);
    if (step.kind === 'leave') this.leave(callAt(this.in('held'), step.index));
    if (step.kind === 'abort') callAt(this.in('waiting'), step.index)?.abort.abort(new Error('aborted'));
    if (step.kind === 'resize') {
      this.limits.slots = step.slots;
      this.queue.resize(step.slots, this.limits.slotsPerKey);
    }
    await flush();
  }

  enter(party: string): Call {
    const call: Call = { party, abort: new AbortController(), state: 'waiting' };
    const slot = this.queue.enter(party);
    if (slot === undefined) {
      const admission = this.queue.wait(party, call.abort.signal);
      admission.then(
        (admitted) => this.#admit(call, admitted),
        (error) => {
          call.state = error === FULL ? 'refused' : 'aborted';
        },
      );
    } else {
      call.state = 'held';
      call.slot = slot;
    }
    this.calls.push(call);
    return call;
  }

  leave(call: Call | undefined): void {
    if (call?.slot === undefined) return;
    call.state = 'left';
    this.queue.leave(call.slot);
  }

  #admit(call: Call, slot: Slot): void {
    this.admissions.push({ call, waiting: this.in('waiting'), held: this.in('held') });
    call.state = 'held';
    call.slot = slot;
  }
}

const callAt = (calls: readonly Call[], index: number) => calls[index % Math.max(calls.length, 1)];
const flush = () => new Promise((resolve) => setImmediate(resolve));
const countOf = (calls: readonly Call[], party: string) => calls.filter((call) => call.party === party).length;

const PARTIES = ['a', 'b', 'c', 'd'];
const LIMITS = fc.record({
  slots: fc.integer({ min: 1, max: 5 }),
  slotsPerKey: fc.integer({ min: 1, max: 5 }),
  waitingPerKey: fc.integer({ min: 0, max: 4 }),
  waiting: fc.integer({ min: 0, max: 8 }),
});
const INDEX = fc.nat({ max: 20 });
const ENTER = fc.record({ kind: fc.constant('enter' as const), party: fc.constantFrom(...PARTIES) });
const LEAVE = fc.record({ kind: fc.constant('leave' as const), index: INDEX });
const ABORT = fc.record({ kind: fc.constant('abort' as const), index: INDEX });
const RESIZE = fc.record({ kind: fc.constant('resize' as const), slots: fc.integer({ min: 1, max: 5 }) });
const STEPS = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: ENTER },
    { weight: 4, arbitrary: LEAVE },
    { weight: 1, arbitrary: ABORT },
    { weight: 1, arbitrary: RESIZE },
  ),
  { minLength: 10, maxLength: 60 },
);

/** Checks a property after each step of a random sequence. */
const checkProperty = (check: (model: Model) => void) =>
  fc.assert(
    fc.asyncProperty(LIMITS, STEPS, async (limits, steps) => {
      const model = new Model(limits);
      for (const step of steps) {
        await model.perform(step);
        check(model);
      }
    }),
  );

describe('FairQueue', () => {
  it('uses no more slots than its limits, except earlier ones after a reduction', async () => {
    await checkProperty(({ queue, limits, heldBefore }) => {
      expect(queue.heldCount).to.be.at.most(Math.max(limits.slots, heldBefore));
      for (const party of PARTIES) expect(queue.heldBy(party)).to.be.at.most(limits.slotsPerKey);
    });
  });

  it('counts the slots and the waiting calls', () =>
    checkProperty((model) => {
      const { queue } = model;
      expect(queue.heldCount).to.equal(model.in('held').length);
      expect([...queue.heldSlots]).to.have.members(model.in('held').map(({ slot }) => slot));
      expect(queue.waitingCount).to.equal(model.in('waiting').length);
      const counts = PARTIES.map((party) => model.in('held', party).length);
      expect(PARTIES.map((party) => queue.heldBy(party))).to.deep.equal(counts);
      expect(queue.heldBy(queue.largestKey ?? '')).to.equal(Math.max(...counts));
    }));

  it('rejects a call only when the limit of its queue key or of all waiting calls is reached', () =>
    fc.assert(
      fc.asyncProperty(LIMITS, STEPS, async (limits, steps) => {
        const model = new Model(limits);
        for (const step of steps) {
          const waiting = model.in('waiting');
          await model.perform(step);
          const call = model.calls.at(-1);
          if (step.kind !== 'enter' || call === undefined || call.state === 'held') continue;
          const isFull = waiting.length >= limits.waiting || countOf(waiting, step.party) >= limits.waitingPerKey;
          expect(call.state).to.equal(isFull ? 'refused' : 'waiting');
        }
      }),
    ));

  it('leaves no slot free while a call waits whose queue key may have one', () =>
    checkProperty((model) => {
      if (model.queue.heldCount >= model.limits.slots) return;
      for (const { party } of model.in('waiting')) {
        expect(model.queue.heldBy(party)).to.equal(model.limits.slotsPerKey);
      }
    }));

  it('admits the queue key with the fewest slots among those that wait and may have one', () =>
    checkProperty((model) => {
      for (const { call, waiting, held } of model.admissions.splice(0)) {
        const counts = waiting.map(({ party }) => countOf(held, party));
        expect(countOf(held, call.party)).to.equal(Math.min(...counts));
      }
    }));

  it('admits the calls of one queue key in the order of their arrival', () =>
    checkProperty((model) => {
      for (const { call, waiting } of model.admissions.splice(0)) {
        expect(waiting.find(({ party }) => party === call.party)).to.equal(call);
      }
    }));

  it('rejects an aborted call with the reason of its signal, and never admits it', () =>
    checkProperty((model) => {
      for (const call of model.calls) {
        if (!call.abort.signal.aborted) continue;
        expect(call.state).to.equal('aborted');
        expect(call.slot).to.equal(undefined);
      }
    }));

  it('admits all remaining calls when calls leave, and is idle afterwards', () =>
    fc.assert(
      fc.asyncProperty(LIMITS, STEPS, async (limits, steps) => {
        const model = new Model(limits);
        for (const step of steps) await model.perform(step);
        for (let held = model.in('held'); held.length > 0; held = model.in('held')) {
          for (const call of held) model.leave(call);
          await flush();
        }
        expect(model.in('waiting')).to.deep.equal([]);
        expect(model.queue.isIdle).to.equal(true);
      }),
    ));

  const UNLIMITED = { slotsPerKey: 100, waitingPerKey: 100, waiting: 100 };

  it('alternates between queue keys with equally many slots, however many of their calls wait', () =>
    fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom(...PARTIES), { maxLength: 20 }), async (arrivals) => {
        const model = new Model({ ...UNLIMITED, slots: 1 });
        let current = model.enter('a');
        for (const party of arrivals) model.enter(party);
        while (model.in('waiting').length > 0) {
          model.leave(current);
          await flush();
          [current] = model.in('held') as [Call];
        }
        const order = ['a', ...model.admissions.map(({ call }) => call.party)];
        for (const [index, { call, waiting }] of model.admissions.entries()) {
          const last = (party: string) => order.slice(0, index + 1).lastIndexOf(party);
          for (const { party } of waiting) expect(last(call.party)).to.be.at.most(last(party));
        }
      }),
    ));

  it('admits every call of a queue key in turn while other queue keys constantly add calls', async () => {
    const model = new Model({ ...UNLIMITED, slots: 1 });
    let current = model.enter('x');
    const calls = Array.from({ length: 5 }, () => model.enter('a'));
    for (let round = 0; round < 20; round++) {
      model.enter(['b', 'c', 'd'][round % 3] ?? '');
      model.leave(current);
      await flush();
      [current] = model.in('held') as [Call];
    }
    expect(calls.map(({ state }) => state)).to.deep.equal(Array(5).fill('left'));
  });

  it('admits a call of an earlier queue key after at most 1,000 others while new queue keys constantly arrive', async () => {
    const { queue } = new Model({ ...UNLIMITED, slots: 1 });
    let current = queue.enter('a') as Slot;
    let isAdmitted = false;
    let added = 0;
    void queue.wait('a').then(() => {
      isAdmitted = true;
    });
    while (!isAdmitted && added <= 2_000) {
      const waiting = queue.wait(`new ${added++}`);
      queue.leave(current);
      current = await Promise.race([waiting, flush().then(() => current)]);
    }
    expect([isAdmitted, added <= 1_002]).to.deep.equal([true, true]);
  });

  it('rejects a call whose signal is already aborted', async () => {
    const model = new Model({ ...UNLIMITED, slots: 1 });
    model.enter('a');
    const reason = new Error('no time');
    expect(await model.queue.wait('b', AbortSignal.abort(reason)).catch((error) => error)).to.equal(reason);
    expect(model.queue.waitingCount).to.equal(0);
  });

  it('keeps the slot of a call whose signal is aborted after the admission', async () => {
    const { queue } = new Model({ ...UNLIMITED, slots: 1 });
    const call = new AbortController();
    const first = queue.enter('a') as Slot;
    const waiting = queue.wait('b', call.signal);
    queue.leave(first);
    call.abort();
    const slot = await waiting;
    expect([queue.heldCount, queue.waitingCount]).to.deep.equal([1, 0]);
    queue.leave(slot);
    expect(queue.isIdle).to.equal(true);
  });

  it('ignores a slot that was already released', async () => {
    const { queue } = new Model({ ...UNLIMITED, slots: 2 });
    const slot = queue.enter('a') as Slot;
    queue.enter('a');
    queue.leave(slot, slot);
    expect([queue.heldCount, queue.heldBy('a')]).to.deep.equal([1, 1]);
  });

  it('releases the slot when its work fails or throws synchronously', async () => {
    const { queue } = new Model({ ...UNLIMITED, slots: 1 });
    const error = new Error('work');
    const throwing = () => {
      throw error;
    };
    for (const work of [throwing, () => Promise.reject(error)]) {
      expect(await queue.run('a', work).catch((error: unknown) => error)).to.equal(error);
    }
    expect(queue.isIdle).to.equal(true);
    expect(await queue.run('a', async () => 'next')).to.equal('next');
  });

  it('passes a slot to a named waiting queue key, even if another one holds fewer', async () => {
    const model = new Model({ ...UNLIMITED, slots: 5 });
    const [first] = ['a', 'a', 'a', 'a', 'b'].map((party) => model.enter(party));
    const [withOldest, fewest] = [model.enter('b'), model.enter('c')];
    model.queue.transfer(first?.slot as Slot, 'b');
    await flush();
    expect([withOldest?.state, fewest?.state]).to.deep.equal(['held', 'waiting']);
    expect(['a', 'b', 'c'].map((party) => model.queue.heldBy(party))).to.deep.equal([3, 2, 0]);
  });

  it('passes on neither a released slot nor one to a queue key without waiting calls', async () => {
    const model = new Model({ ...UNLIMITED, slots: 1 });
    const [first, second] = ['a', 'b'].map((party) => model.enter(party));
    model.leave(first);
    await flush();
    const third = model.enter('a');
    model.queue.transfer(first?.slot as Slot, 'a');
    model.queue.transfer(second?.slot as Slot, 'b');
    await flush();
    expect([second?.state, third.state, model.queue.heldBy('b')]).to.deep.equal(['held', 'waiting', 1]);
  });

  describe('for a call that released its slot during a remote call', () => {
    /** @returns a model with four slots, and the names of the calls in the order of admission. */
    function createModel() {
      const model = new Model({ slots: 4, slotsPerKey: 3, waitingPerKey: 5, waiting: 100 });
      const admitted: string[] = [];
      const enter = (...names: readonly string[]) => names.map((name) => model.enter(name.slice(0, 1)));
      const enterAgain = async (name: string) => {
        const admission = model.queue.reenter(name);
        if (admission instanceof Promise) admitted.push(`${name} waits`);
        await admission;
        admitted.push(`${name} returns`);
      };
      return { model, enter, enterAgain, admitted };
    }

    it('admits it before its queue key, and after another one that holds fewer slots', async () => {
      const { model, enter, enterAgain, admitted } = createModel();
      const [a1, a2, , , a4, b2] = enter('a1', 'a2', 'a3', 'b1', 'a4', 'b2');
      model.leave(a1);
      await flush();
      expect(b2?.state).to.equal('held');
      const [b3] = enter('b3');
      void enterAgain('a');
      model.leave(b2);
      await flush();
      expect([b3?.state, ...admitted]).to.deep.equal(['held', 'a waits']);
      model.leave(a2);
      await flush();
      expect([a4?.state, ...admitted]).to.deep.equal(['waiting', 'a waits', 'a returns']);
    });

    it('admits it without a free slot when only its own queue key waits', async () => {
      const { enter, enterAgain, admitted } = createModel();
      enter('b1', 'a1', 'a2', 'a3', 'a4');
      await enterAgain('a');
      expect(admitted).to.deep.equal(['a returns']);
    });

    it('admits it when a slot is free that waiting calls of another queue key may not have', async () => {
      const { enter, enterAgain, admitted } = createModel();
      enter('a1', 'a2', 'a3', 'a4');
      void enterAgain('b');
      await flush();
      expect(admitted).to.deep.equal(['b waits', 'b returns']);
    });

    it('lets it wait when twice as many slots are held as there are, and admits it later', async () => {
      const { model, enter, enterAgain, admitted } = createModel();
      const slots = Array.from({ length: 8 }, () => model.queue.reenter('a') as Slot);
      void enterAgain('a');
      const [b1] = enter('b1');
      model.queue.leave(...slots.slice(0, 5));
      await flush();
      expect([b1?.state, ...admitted]).to.deep.equal(['held', 'a waits']);
      model.queue.leave(...slots.slice(5));
      await flush();
      expect(admitted).to.deep.equal(['a waits', 'a returns']);
    });

    it('never rejects it, for any number of waiting calls', async () => {
      const model = new Model({ slots: 1, slotsPerKey: 1, waitingPerKey: 0, waiting: 1 });
      const a1 = model.enter('a');
      const waiting = model.queue.wait('b').catch((error: unknown) => error);
      expect(await waiting).to.equal(FULL);
      const returning = [1, 2, 3].map(() => model.queue.reenter('b'));
      expect(model.queue.heldCount).to.equal(2);
      model.leave(a1);
      for (const slot of returning) model.queue.leave(await slot);
      expect(model.queue.isIdle).to.equal(true);
    });
  });
});

/** Work that records its start and stays pending until `end` or `fail` is called. */
function createWork(name: string, started: string[]) {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const run = () => {
    started.push(name);
    return promise;
  };
  return { run, end: () => resolve(name), fail: () => reject(new Error(name)) };
}

describe('createKeyedQueue', () => {
  it('runs work with the same key in the order of arrival, also work that arrives while the last one runs', async () => {
    const started: string[] = [];
    const queue = createKeyedQueue(5);
    const [a, b, c] = ['a', 'b', 'c'].map((name) => createWork(name, started)) as [
      ReturnType<typeof createWork>,
      ReturnType<typeof createWork>,
      ReturnType<typeof createWork>,
    ];
    const first = queue.run('key', a.run);
    const second = queue.run('key', b.run);
    a.end();
    expect(await first).to.equal('a');
    const third = queue.run('key', c.run);
    await flush();
    expect(started).to.deep.equal(['a', 'b']);
    b.end();
    c.end();
    expect(await Promise.all([second, third])).to.deep.equal(['b', 'c']);
  });

  it('runs the next work when work with the same key failed, and runs other keys at once', async () => {
    const started: string[] = [];
    const queue = createKeyedQueue(5);
    const [a, b] = [createWork('a', started), createWork('b', started)];
    const failedRun = queue.run('key', a.run).catch((error: Error) => error.message);
    const waiting = queue.run('key', b.run);
    expect(await queue.run('other', async () => 'done')).to.equal('done');
    a.fail();
    b.end();
    expect([await failedRun, await waiting]).to.deep.equal(['a', 'b']);
  });

  it('rejects with unavailable when as much work with the key runs and waits as the capacity allows', async () => {
    const queue = createKeyedQueue(2);
    const started: string[] = [];
    const [a, b] = [createWork('a', started), createWork('b', started)];
    const runs = [queue.run('key', a.run), queue.run('key', b.run)];
    const error = await queue.run('key', async () => 'c').catch((error: unknown) => error);
    expect(error).to.be.instanceOf(Failure).and.to.have.property('code', 'unavailable');
    a.end();
    b.end();
    await Promise.all(runs);
    expect(await queue.run('key', async () => 'c'), 'later').to.equal('c');
  });
});
