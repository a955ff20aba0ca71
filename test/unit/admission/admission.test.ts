import { EventEmitter } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import type { Response } from 'express';
import { Admission } from '../../../adapters/http/admission.ts';
import { Failure } from '../../../domain/shared/failure.ts';

/** Of four places, one party has two at most. */
function open() {
  const admission = new Admission(4);
  const begun: string[] = [];
  /** @param name the party and a number, as in `a1`. @returns the response of the request. */
  const come = (name: string) => {
    const response = Object.assign(new EventEmitter(), { locals: {} }) as unknown as Response;
    const wait = admission.enter(name.slice(0, 1), response);
    if (wait === undefined) begun.push(name);
    else
      wait.then(
        () => begun.push(name),
        (error: unknown) => begun.push(`${name} ${error instanceof Failure ? error.code : error}`),
      );
    return response;
  };
  return { admission, begun, come };
}

describe('The admission of requests', () => {
  it('lets them in at once while there is room, in the same turn', () => {
    const { begun, come } = open();
    for (const name of ['a1', 'a2', 'b1', 'b2']) come(name);
    expect(begun).to.deep.equal(['a1', 'a2', 'b1', 'b2']);
  });

  it('gives places on when a turn of the event loop is over, and all that came in it was heard', async () => {
    const { admission, begun, come } = open();
    const a1 = come('a1');
    come('a2');
    come('a3');
    admission.leave(a1);
    await Promise.resolve();
    expect(begun).to.deep.equal(['a1', 'a2']);
    for (const name of ['b1', 'b2', 'b3']) come(name);
    await turn();
    expect(begun).to.deep.equal(['a1', 'a2', 'b1', 'b2', 'a3']);
  });

  it('lets a request in once, and takes back what it has once', async () => {
    const { admission, begun, come } = open();
    const a1 = come('a1');
    expect(admission.enter('a', a1)).to.equal(undefined);
    come('a2');
    expect(admission.enter('b', come('b1')), 'a place is a place').to.equal(undefined);
    admission.leave(a1);
    admission.leave(a1);
    for (const name of ['a3', 'a4']) come(name);
    await turn();
    expect(begun).to.deep.equal(['a1', 'a2', 'b1', 'a3']);
  });

  it('keeps what has no party never waiting', () => {
    const { admission, come } = open();
    for (const name of ['a1', 'a2', 'b1', 'b2']) come(name);
    expect(admission.enter(undefined, come('c1'))).to.equal(undefined);
  });

  it('forgets a request whose caller went away', async () => {
    const { admission, begun, come } = open();
    const a1 = come('a1');
    come('a2');
    const a3 = come('a3');
    come('a4');
    a3.emit('close');
    await turn();
    expect(begun.splice(0)).to.deep.equal(['a1', 'a2', 'a3 unavailable']);
    admission.leave(a1);
    await turn();
    await turn();
    expect(begun).to.deep.equal(['a4']);
    expect((a3.locals as { visit?: unknown }).visit).to.equal(undefined);
  });

  it('gives the place of a request to others while it is elsewhere, and then one back', async () => {
    const { admission, begun, come } = open();
    const a1 = come('a1');
    come('a2');
    come('a3');
    const { promise, resolve } = Promise.withResolvers<string>();
    const work = admission.within(a1, () => admission.elsewhere(() => promise));
    await turn();
    await turn();
    expect(begun).to.deep.equal(['a1', 'a2', 'a3']);
    for (const name of ['b1', 'b2', 'b3']) come(name);
    resolve('answer');
    let answer: string | undefined;
    void work.then((text) => {
      answer = text;
    });
    await turn();
    expect(answer, 'others have all places').to.equal(undefined);
    expect(begun).to.deep.equal(['a1', 'a2', 'a3', 'b1', 'b2']);
  });

  it('lets one come back as soon as a place is free, before others of its party', async () => {
    const { admission, come } = open();
    const [a1, a2] = [come('a1'), come('a2')];
    come('b1');
    come('b2');
    const calls = [Promise.withResolvers<number>(), Promise.withResolvers<number>()] as const;
    const work = admission.within(a1, () =>
      Promise.all(calls.map(({ promise }) => admission.elsewhere(() => promise))),
    );
    await turn();
    for (const name of ['a3', 'a4', 'b3']) come(name);
    for (const [index, call] of calls.entries()) call.resolve(index);
    await turn();
    admission.leave(a2);
    expect(await work, 'what was done at several places at once').to.deep.equal([0, 1]);
  });

  it('leaves work alone that no request waits for, or whose request was answered', async () => {
    const { admission, begun, come } = open();
    expect(await admission.elsewhere(async () => 1)).to.equal(1);
    const a1 = come('a1');
    const { promise, resolve } = Promise.withResolvers<number>();
    const work = admission.within(a1, () => admission.elsewhere(() => promise));
    admission.leave(a1);
    for (const name of ['a2', 'b1', 'b2']) come(name);
    await turn();
    for (const name of ['a3', 'c1']) come(name);
    resolve(2);
    expect(await work).to.equal(2);
    expect(begun, 'two of a, two of b').to.deep.equal(['a1', 'a2', 'b1', 'b2', 'a3']);
  });

  it('hands on what failed elsewhere', async () => {
    const { admission, come } = open();
    const fault = new Error('no answer');
    const work = admission.within(come('a1'), () => admission.elsewhere(() => Promise.reject(fault)));
    expect(await work.catch((error: unknown) => error)).to.equal(fault);
  });
});
