import { expect } from 'chai';
import sinon from 'sinon';
import { WriteCheck } from '../../../adapters/persistence/write-check.ts';
import { StoreUnavailable, StoreUnwritable } from '../../../application/ports/store.ts';

const outcome = (check: WriteCheck) =>
  check.check().then(
    () => 'writable',
    (error: Error) => error.message,
  );

describe('Whether the database takes writes', () => {
  let clock: sinon.SinonFakeTimers;
  beforeEach(() => {
    clock = sinon.useFakeTimers({ toFake: ['performance'] });
  });
  afterEach(() => clock.restore());

  it('is found out by one write in a second, whoever asks, and however often', async () => {
    const write = sinon.stub().resolves();
    const check = new WriteCheck(write);
    await Promise.all(Array.from({ length: 50 }, () => check.check()));
    clock.tick(900);
    await check.check();
    expect(write.callCount).to.equal(1);
    clock.tick(200);
    await check.check();
    expect(write.callCount).to.equal(2);
  });

  it('is not found out by a second write while the first one hangs', async () => {
    const { promise, reject } = Promise.withResolvers<void>();
    const write = sinon.stub().returns(promise);
    const check = new WriteCheck(write);
    const first = outcome(check);
    clock.tick(60_000);
    const second = outcome(check);
    expect(write.callCount).to.equal(1);
    reject(new StoreUnavailable('the database takes too long'));
    expect(await Promise.all([first, second])).to.deep.equal(Array(2).fill('the database takes too long'));
  });

  it('is no for five seconds after a write of somebody else was refused, although a small one is taken', async () => {
    const check = new WriteCheck(sinon.stub().resolves());
    check.noteFailure(new StoreUnwritable('the database cannot be written'));
    clock.tick(4_900);
    expect(await outcome(check)).to.equal('the database cannot be written');
    clock.tick(200);
    expect(await outcome(check)).to.equal('writable');
  });

  it('has nothing to do with writes that failed for another reason', async () => {
    const check = new WriteCheck(sinon.stub().resolves());
    check.noteFailure(new StoreUnavailable('the database takes too long'));
    check.noteFailure(new Error('unforeseen'));
    expect(await outcome(check)).to.equal('writable');
  });
});
