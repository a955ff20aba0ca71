import { expect } from 'chai';
import sinon from 'sinon';
import { PresentationVerifier } from '../../../application/verification/presentation-verifier.ts';
import { ACME, formOf, present, World } from './kit.ts';

describe('Two answers to one request', () => {
  afterEach(() => sinon.restore());

  it('leave the one that was taken in as it is, when judging the other one breaks off', async () => {
    const world = await World.make();
    await world.configure();
    const asked = await world.request();
    const form = () => formOf(asked, { card: [present(world, asked)] });
    const [first, second] = [await form(), await form()];

    const taken = Promise.withResolvers<void>();
    const judging = Promise.withResolvers<void>();
    const verify = sinon.stub(PresentationVerifier.prototype, 'verify');
    verify.callThrough();
    // What the process remembers is judged first, then what is stored.
    verify.onCall(0).rejects(new TypeError('a bug'));
    verify.onCall(1).callsFake(async () => {
      judging.resolve();
      await taken.promise;
      throw new TypeError('a bug');
    });
    const broken = world.receiveResponse
      .execute(ACME, asked.publicId, first)
      .catch((error: Error) => error.message);
    await judging.promise;
    world.webhooks.beforeAnswer = async () => {
      taken.resolve();
      expect(await broken).to.equal('a bug');
    };
    await world.receiveResponse.execute(ACME, asked.publicId, second);

    const { status, outcome } = await world.session(asked.session.id);
    expect([status, outcome?.failure]).to.deep.equal(['completed', undefined]);
    expect(outcome?.deliveries?.map(({ result }) => result)).to.deep.equal(['delivered']);
    expect(world.webhooks.calls).to.have.length(1);
  });
});
