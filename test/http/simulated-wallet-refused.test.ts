import { expect } from 'chai';
import { MISBEHAVIOURS, type Misbehaviour, type Path } from '../../tools/wallet/core/index.ts';
import { NAMES, type Name, QUERIES, SimulatedWorld, TOLD } from '../support/simulated-world.ts';

describe('a simulated wallet that misbehaves', () => {
  let world: SimulatedWorld;

  before(async () => {
    world = await SimulatedWorld.open();
  });
  after(() => world.close());

  type Refusal = readonly [check: string, reason: string];
  /** What the report of the session says of each. A replay and a refusal of the user are no faults of a presentation. */
  const REFUSALS: Readonly<Record<Name, Readonly<Partial<Record<Misbehaviour, Refusal>>>>> = {
    diploma: {
      'changed-claim': ['disclosures', 'unreferenced_disclosure'],
      'other-nonce': ['key binding', 'nonce_mismatch'],
      'old-key-binding': ['key binding', 'kb_iat_window'],
      'foreign-holder-key': ['key binding', 'kb_signature'],
      'withheld-claim': ['query', 'missing_claim'],
    },
    licence: {
      'changed-claim': ['elements', 'digest_mismatch'],
      'other-nonce': ['device signature', 'device_signature'],
      'foreign-holder-key': ['device signature', 'device_signature'],
      'withheld-claim': ['query', 'missing_claim'],
    },
  };
  const expectRefused = async (name: Name, [check, reason]: Refusal, misbehave?: Misbehaviour) => {
    const { uri, session: id } = await world.ask(name);
    const options = misbehave === undefined ? {} : { misbehave };
    const answer = await world.wallet.present(await world.wallet.readRequest(uri), options);
    expect([answer.status, answer.body['error']]).to.deep.equal([400, 'invalid_request']);
    const seen = await world.session(id);
    expect([seen.status, seen.failure.code]).to.deep.equal(['failed', 'presentation_refused']);
    expect(seen.failure.message).to.include(`${name}: ${reason}`);
    const failed = seen.report.filter(({ result }: { result: string }) => result === 'failed');
    expect(failed[0]).to.include({ id: name, check, reason });
    expect(seen, 'nothing was taken').to.not.have.property('credentials');
  };

  for (const name of NAMES) {
    describe(`misbehaves with the ${name}, and is refused`, () => {
      for (const [misbehave, refusal] of Object.entries(REFUSALS[name]) as [Misbehaviour, Refusal][])
        it(misbehave, () => expectRefused(name, refusal, misbehave));

      it('replay: the first answer counts, the same again does not', async () => {
        const { uri, session: id } = await world.ask(name);
        const answer = await world.wallet.present(await world.wallet.readRequest(uri), {
          misbehave: 'replay',
        });
        expect(answer.status).to.equal(200);
        expect(answer.repeated?.status).to.equal(400);
        expect(answer.repeated?.body).to.include({ error: 'invalid_request' });
        expect(await world.session(id)).to.include({ status: 'completed' });
      });

      it('decline: the verifier hears that the user said no', async () => {
        const { uri, session: id } = await world.ask(name);
        const answer = await world.wallet.present(await world.wallet.readRequest(uri), {
          misbehave: 'decline',
        });
        expect(answer.status).to.equal(200);
        const { status, failure } = await world.session(id);
        expect([status, failure.code]).to.deep.equal(['failed', 'access_denied']);
      });
    });
  }

  it('knows no other way to misbehave than those that are tested', () => {
    const tested = new Set([...Object.values(REFUSALS).flatMap(Object.keys), 'replay', 'decline']);
    expect(Object.keys(MISBEHAVIOURS)).to.have.members([...tested]);
  });

  it('does not misbehave where a format has no such thing, rather than behave well', async () => {
    const { uri, session: id } = await world.ask('licence');
    const read = await world.wallet.readRequest(uri);
    const said = await world.wallet
      .present(read, { misbehave: 'old-key-binding' })
      .catch(({ message }: Error) => message);
    expect(said).to.equal('there is no "old-key-binding" for a card of the format mso_mdoc');
    expect((await world.session(id)).status).to.equal('fetched');
  });

  it('shows more where its user wants that, and less', async () => {
    const [credential] = world.wallet.credentials;
    if (credential === undefined) throw new Error('no card');
    const shown = async (disclose: readonly Path[]) => {
      const { uri, session: id } = await world.ask('diploma');
      await world.wallet.present(await world.wallet.readRequest(uri), {
        choice: { diploma: { credential, disclose } },
      });
      return world.session(id);
    };
    const asked = QUERIES.diploma.claims.map(({ path }) => path);
    expect((await shown([...asked, ['languages', 1]])).credentials[0].values).to.deep.include({
      ...TOLD.diploma,
      languages: ['fr'],
    });
    expect((await shown(asked.slice(1))).failure.message).to.include('missing_claim');
  });

  // The cards are of no use after this.
  describe('after its card was revoked', () => {
    for (const name of NAMES)
      it(`shows the ${name} in vain`, async () => {
        await world.post('/session/revoke', { sessionId: world.offers[name], status: 1 });
        await expectRefused(name, ['status', 'status_revoked']);
      });
  });
});
