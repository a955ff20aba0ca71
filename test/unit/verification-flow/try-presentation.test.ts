import { expect } from 'chai';
import sinon from 'sinon';
import { signJwt } from '../../../application/keys/sign-jwt.ts';
import { packEntries } from '../../../domain/status-lists/bits.ts';
import { stepsOf } from '../../contract/store/steps.ts';
import { compressList } from '../../support/compress-list.ts';
import { ACME, type Changes, query, VCT, type World } from './kit.ts';
import { brief, TrialWorld, unbound } from './trial-kit.ts';

const LISTS = 'https://issuer.example/lists/1';

describe('A question that is tried', () => {
  let kit: TrialWorld;
  let world: World;
  beforeEach(async () => {
    kit = await TrialWorld.make();
    ({ world } = kit);
  });
  afterEach(() => sinon.restore());

  const tried = (...given: Parameters<TrialWorld['tried']>) => kit.tried(...given);
  const card = (changes: Changes = {}) => kit.card(changes);

  async function serveStatus(status: number) {
    const lst = compressList(packEntries(2, 100, [{ index: 1, status }]));
    const payload = {
      sub: LISTS,
      iat: world.seconds,
      exp: world.seconds + 3600,
      status_list: { bits: 2, lst },
    };
    const jwt = await signJwt(world.kms, { chain: world.issuer, typ: 'statuslist+jwt', payload });
    world.remote.answer = () => ({
      status: 200,
      contentType: 'application/statuslist+jwt',
      body: Buffer.from(jwt),
    });
  }
  const listed = { visible: { status: { status_list: { idx: 1, uri: LISTS } } } };

  it('says that a good credential answers it, and what nobody looked at', async () => {
    await world.configure();
    for (const text of [card(), unbound(card()), `\n${unbound(card())} `]) {
      const trial = await tried(text);
      expect(brief(trial)).to.deep.equal([[['card', 'passed']]]);
      expect(trial.missing).to.deep.equal([]);
      expect(trial.untried).to.deep.equal([
        'nonce',
        'audience',
        'holder binding present',
        'key binding',
        'transaction data',
      ]);
      const checks = trial.presentations[0]?.queries[0]?.report.map(({ check }) => check);
      expect(checks).to.include.members(['issuer signature', 'issuer trust', 'validity period', 'status']);
      expect(checks).to.not.include.members(['key binding']);
    }
  });

  it('gives back where claims stand, and never what they say', async () => {
    await world.configure();
    const trial = await tried(card({ claims: { name: 'Erika Secret', age: 4_242_424 } }));
    expect(trial.presentations[0]?.shown).to.have.deep.members([['name'], ['age'], ['over18']]);
    expect(trial.presentations[0]?.types).to.deep.equal([VCT]);
    expect(JSON.stringify(trial)).to.not.match(/Erika|4242424/);
  });

  it('stores nothing', async () => {
    await world.configure();
    const stored = () => stepsOf(world.store, ACME).state();
    const before = await stored();
    const commit = sinon.spy(world.store, 'commit');
    await tried(card());
    expect(commit.callCount).to.equal(0);
    expect(await stored()).to.deep.equal(before);
  });

  const cases: [string, () => string | Promise<string>, string][] = [
    [
      'a changed claim',
      () =>
        card().replace(/~([^~]+)~/, (_, one: string) => {
          const [salt, name] = JSON.parse(Buffer.from(one, 'base64url').toString());
          return `~${Buffer.from(JSON.stringify([salt, name, 'other'])).toString('base64url')}~`;
        }),
      'unreferenced_disclosure',
    ],
    [
      'a signature that was changed',
      () => card({ issuerSignature: (made) => Buffer.from(made).reverse() }),
      'issuer_signature',
    ],
    [
      'an issuer that nobody trusts',
      async () => card({ issuer: await world.keyChain('stranger', 'x', ['signing']) }),
      'untrusted_chain',
    ],
    ['one that ended', () => card({ visible: { exp: world.seconds - 100 } }), 'credential_expired'],
    ['one to come', () => card({ visible: { nbf: world.seconds + 1_000 } }), 'credential_not_yet_valid'],
    ['another type', () => card({ visible: { vct: 'urn:other' } }), 'type_mismatch'],
    ['a claim that is withheld', () => unbound(card()).replace(/~.*~/, '~'), 'missing_claim'],
    [
      'a revoked one',
      async () => {
        await serveStatus(1);
        return card(listed);
      },
      'status_revoked',
    ],
    [
      'a suspended one',
      async () => {
        await serveStatus(2);
        return card(listed);
      },
      'status_suspended',
    ],
    ['one whose list nobody serves', () => card(listed), 'status_unavailable'],
    ['text that only looks like one', () => 'e30.e30.c2ln~', 'issuer_typ'],
    ['half of one', () => `${card().slice(0, 20)}~`, 'malformed'],
  ];
  for (const [what, make, reason] of cases) {
    it(`refuses ${what}`, async () => {
      await world.configure();
      const trial = await tried(await make());
      expect(brief(trial)).to.deep.equal([[['card', reason]]]);
      expect(trial.missing).to.deep.equal(['card']);
      const failed = trial.presentations[0]?.queries[0]?.report.at(-1);
      expect(failed).to.include({ result: 'failed', reason });
    });
  }

  it('names every claim that is not there, also where nobody trusts the issuer', async () => {
    const claims = [{ path: ['name'] }, { path: ['address', 'street'] }, { path: ['nothing'] }];
    await world.configure({ dcql_query: query({ id: 'card', claims }) });
    const stranger = await world.keyChain('stranger', 'x', ['signing']);
    const trial = await tried(card({ issuer: stranger }));
    const [one] = trial.presentations[0]?.queries ?? [];
    expect(one?.reason).to.equal('untrusted_chain');
    expect(one?.missing).to.deep.equal([['address', 'street'], ['nothing']]);
  });

  it('looks at a list of good ones only', async () => {
    await world.configure();
    await serveStatus(1);
    await tried(card({ ...listed, visible: { ...listed.visible, vct: 'urn:other' } }));
    expect(world.remote.calls).to.deep.equal([]);
    await serveStatus(0);
    expect(brief(await tried(card(listed)))).to.deep.equal([[['card', 'passed']]]);
  });

  it('holds to the profile of the tenant, all but what binds to a request', async () => {
    await world.configure();
    await world.store.forTenant(
      ACME,
      async ({ tenant }) => tenant.save({ ...(await tenant.get()), profile: 'haip' }),
      { by: 'system' },
    );
    expect(brief(await tried(unbound(card())))).to.deep.equal([[['card', 'passed']]]);
  });
});
