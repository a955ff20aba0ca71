import { expect } from 'chai';
import { SessionOutcomes } from '../../../application/verification/session-outcomes.ts';
import { noted } from '../../../domain/sessions/session-change.ts';
import { ACME, World } from './kit.ts';

describe('What came of a session', () => {
  it('is recorded although the session moves on while it is read anew', async () => {
    const world = await World.make();
    await world.configure();
    const { session } = await world.request();
    const now = world.clock.now();
    const known = await world.session(session.id);
    // It moved since the caller saw it, and moves once more between the second look and the second try.
    await world.store.commit(ACME, { session: noted(known, {}) }, now);
    const commit = world.store.commit.bind(world.store);
    let tries = 0;
    world.store.commit = async (...parameters) => {
      if (++tries === 2) await commit(ACME, { session: noted(await world.session(session.id), {}) }, now);
      return commit(...parameters);
    };
    const failure = { code: 'internal_error', message: 'it broke' } as const;
    const recorded = await new SessionOutcomes(world).record(known, 'fail', { failure });
    expect([recorded?.outcome, tries]).to.deep.equal([{ failure }, 3]);
    expect((await world.session(session.id)).status).to.equal('failed');
  });
});
