import { hash } from 'node:crypto';
import { expect } from 'chai';
import sinon from 'sinon';
import { signJwt } from '../../../application/keys/sign-jwt.ts';
import type { CompiledClaim, CompiledCredentialQuery } from '../../../domain/dcql/compile.ts';
import { encodeCbor } from '../../../domain/formats/cbor/encode.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { packEntries } from '../../../domain/status-lists/bits.ts';
import { findMissingClaims, readUnverified } from '../../../domain/verification/trial/unverified-presentation.ts';
import { stepsOf } from '../../contract/store/steps.ts';
import { compressList } from '../../support/compress-list.ts';
import { ACME, type Changes, query, VCT, type World } from './kit.ts';
import { brief, cardQueries, DAY_MS, LICENCE, NAMESPACE, responseOf, TrialWorld, unbound } from './trial-kit.ts';

const LISTS = 'https://issuer.example/lists/1';

describe('trial of a presentation request', () => {
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
    const payload = { sub: LISTS, iat: world.seconds, exp: world.seconds + 3600, status_list: { bits: 2, lst } };
    const jwt = await signJwt(world.kms, { chain: world.issuer, typ: 'statuslist+jwt', payload });
    world.remote.answer = () => ({ status: 200, contentType: 'application/statuslist+jwt', body: Buffer.from(jwt) });
  }
  const listed = { visible: { status: { status_list: { idx: 1, uri: LISTS } } } };

  it('reports that a valid credential matches, and lists the skipped checks', async () => {
    await world.configure();
    for (const text of [card(), unbound(card()), `\n${unbound(card())} `]) {
      const trial = await tried(text);
      expect(brief(trial)).to.deep.equal([[['card', 'passed']]]);
      expect(trial.missing).to.deep.equal([]);
      expect(trial.untried).to.deep.equal(['nonce', 'audience', 'holder binding present', 'key binding', 'transaction data']);
      const checks = trial.presentations[0]?.queries[0]?.report.map(({ check }) => check);
      expect(checks).to.include.members(['issuer signature', 'issuer trust', 'validity period', 'status']);
      expect(checks).to.not.include.members(['key binding']);
    }
  });

  it('returns paths of claims, and never their values', async () => {
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
    ['a signature that was changed', () => card({ issuerSignature: (made) => Buffer.from(made).reverse() }), 'issuer_signature'],
    ['an issuer that is not trusted', async () => card({ issuer: await world.keyChain('stranger', 'x', ['signing']) }), 'untrusted_chain'],
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
    ['one whose list is not served', () => card(listed), 'status_unavailable'],
    ['text that only looks like one', () => 'e30.e30.c2ln~', 'issuer_typ'],
    ['half of one', () => `${card().slice(0, 20)}~`, 'malformed'],
  ];
  for (const [what, make, reason] of cases) {
    it(`rejects ${what}`, async () => {
      await world.configure();
      const trial = await tried(await make());
      expect(brief(trial)).to.deep.equal([[['card', reason]]]);
      expect(trial.missing).to.deep.equal(['card']);
      const failed = trial.presentations[0]?.queries[0]?.report.at(-1);
      expect(failed).to.include({ result: 'failed', reason });
    });
  }

  it('names every missing claim, even if the issuer is not trusted', async () => {
    const claims = [{ path: ['name'] }, { path: ['address', 'street'] }, { path: ['nothing'] }];
    await world.configure({ dcql_query: query({ id: 'card', claims }) });
    const stranger = await world.keyChain('stranger', 'x', ['signing']);
    const trial = await tried(card({ issuer: stranger }));
    const [one] = trial.presentations[0]?.queries ?? [];
    expect(one?.reason).to.equal('untrusted_chain');
    expect(one?.missing).to.deep.equal([['address', 'street'], ['nothing']]);
  });

  it('verifies a list of valid presentations only', async () => {
    await world.configure();
    await serveStatus(1);
    await tried(card({ ...listed, visible: { ...listed.visible, vct: 'urn:other' } }));
    expect(world.remote.calls).to.deep.equal([]);
    await serveStatus(0);
    expect(brief(await tried(card(listed)))).to.deep.equal([[['card', 'passed']]]);
  });

  it('applies the profile of the tenant, except the binding to a request', async () => {
    await world.configure();
    await world.store.forTenant(ACME, async ({ tenant }) => tenant.save({ ...(await tenant.get()), profile: 'haip' }), { by: 'system' });
    expect(brief(await tried(unbound(card())))).to.deep.equal([[['card', 'passed']]]);
  });
});

describe('presentation in a trial', () => {
  let kit: TrialWorld;
  let world: World;
  beforeEach(async () => {
    kit = await TrialWorld.make();
    ({ world } = kit);
  });

  const tried = (...given: Parameters<TrialWorld['tried']>) => kit.tried(...given);
  const card = (changes: Changes = {}) => kit.card(changes);

  it('accepts an mdoc in every encoding', async () => {
    await world.configure({ dcql_query: { credentials: [LICENCE] } });
    const bare = kit.licence();
    const bytes = Buffer.from(bare, 'base64url');
    const response = responseOf(bare);
    for (const text of [
      bare,
      bytes.toString('hex'),
      bytes.toString('base64'),
      response.toString('base64url'),
      JSON.stringify({ vp_token: { licence: [response.toString('base64url')] } }),
      JSON.stringify({ protocol: 'x', data: { vp_token: { licence: [response.toString('base64url')] } } }),
    ]) {
      const trial = await tried(text);
      expect(brief(trial), text.slice(0, 30)).to.deep.equal([[['licence', 'passed']]]);
      expect(trial.untried).to.deep.equal(['nonce', 'audience', 'device signature', 'transaction data']);
      expect(trial.presentations[0]?.shown).to.deep.equal([
        [NAMESPACE, 'name'],
        [NAMESPACE, 'born'],
      ]);
      expect(JSON.stringify(trial)).to.not.include('Erika');
    }
  });

  it('rejects an mdoc that was changed, has expired, has an unknown issuer or another type', async () => {
    await world.configure({ dcql_query: { credentials: [LICENCE] } });
    const changed = Buffer.from(kit.licence(), 'base64url');
    changed.write('Urika', changed.indexOf('Erika'));
    const reasons = [];
    for (const text of [
      changed.toString('hex'),
      kit.licence({ signed: new Date(world.clock.time - 2 * DAY_MS) }),
      kit.licence({ issuer: await world.keyChain('stranger', 'x', ['signing']) }),
      kit.licence({ docType: 'org.example.other.1' }),
    ])
      reasons.push(brief(await tried(text))[0]?.[0]?.[1]);
    expect(reasons).to.deep.equal(['digest_mismatch', 'credential_expired', 'untrusted_chain', 'doctype_mismatch']);
  });

  it('lists missing credentials, and matches each query with its credential', async () => {
    await world.configure({ dcql_query: { credentials: [...cardQueries('one', 'two'), LICENCE] } });
    const both = responseOf(kit.licence(), kit.licence()).toString('base64url');
    const mdocs = await tried(both);
    expect(brief(mdocs)).to.deep.equal([[['licence', 'passed']], [['licence', 'passed']]]);
    expect(mdocs.missing).to.deep.equal(['one', 'two']);
    expect(brief(await tried(card()))).to.deep.equal([
      [
        ['one', 'passed'],
        ['two', 'passed'],
      ],
    ]);
    const named = await tried(JSON.stringify({ vp_token: { two: [card()], licence: kit.licence() } }));
    expect(brief(named)).to.deep.equal([[['two', 'passed']], [['licence', 'passed']]]);
    expect(named.missing).to.deep.equal(['one']);
  });

  const garbage: [string, string, RegExp][] = [
    ['words', 'not a credential', /neither an SD-JWT VC nor an mdoc/],
    ['bytes', 'ffffffffffff', /neither an SD-JWT VC nor an mdoc/],
    ['other CBOR', 'a0', /not an mdoc/],
    ['broken JSON', '{"vp_token":', /invalid JSON/],
    ['other JSON', '{"vp_token": [1]}', /not an object of presentations/],
    ['a number for a presentation', '{"vp_token": {"card": [5]}}', /not a string/],
    ['an encrypted answer', '{"response": "a.b.c.d.e"}', /encrypted response/],
    ['an encrypted mdoc', encodeCbor(['dcapi', {}]).toString('base64url'), /encrypted response/],
    ['a JWT', 'a.b.c', /it is a JWT/],
    ['many', JSON.stringify({ card: Array.from({ length: 20 }, () => 'e30.e30.x~') }), /more than 10/],
  ];
  for (const [what, text, message] of garbage) {
    it(`rejects ${what}`, async () => {
      await world.configure();
      const failure = await tried(text).then(
        () => undefined,
        (error: unknown) => error,
      );
      expect(failure).to.be.instanceOf(Failure).and.to.include({ code: 'invalid_input' });
      expect((failure as Failure).details.errors?.[0]?.path).to.equal('presentation');
      expect((failure as Failure).details.errors?.[0]?.message).to.match(message);
    });
  }

  it('evaluates a limited number of pairs', async () => {
    const ids = Array.from({ length: 26 }, (_, index) => `card-${index}`);
    await world.configure({ dcql_query: { credentials: cardQueries(...ids) } });
    const failure = await tried(JSON.stringify({ a: [card(), card()] })).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(failure).to.be.instanceOf(Failure).and.to.include({ code: 'invalid_input' });
  });

  it('is only available to callers with the right', async () => {
    await world.configure();
    for (const attempt of [tried(card(), ['other']), tried(card(), null, 'unknown')]) {
      const failure = await attempt.then(
        () => undefined,
        (error: unknown) => error,
      );
      expect(failure).to.be.instanceOf(Failure).and.to.include({ code: 'not_found' });
    }
  });
});

const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Nobody signed it: whoever pastes it needs no issuer. */
function unsigned(lists: number): string {
  const disclosures = Array.from({ length: lists }, (_, index) => encoded([`salt-${index}`, Array(600).fill({})]));
  const all = disclosures.map((text) => ({ '...': hash('sha256', text, 'base64url') }));
  const header = encoded({ alg: 'ES256', typ: 'dc+sd-jwt' });
  return `${header}.${encoded({ vct: 'urn:card:1', all })}.${'A'.repeat(86)}~${disclosures.join('~')}~`;
}

describe('large text in a trial', () => {
  it('is evaluated once for each claim, for any number of sets', () => {
    let looks = 0;
    const claims = new Proxy(
      {},
      {
        getOwnPropertyDescriptor: () => {
          looks++;
          return undefined;
        },
      },
    );
    const asked = ['a', 'b', 'c', 'd'].map((name) => ({ path: [name] }) as unknown as CompiledClaim);
    const claimSets = asked.map((one) => asked.filter((other) => other !== one));
    const query = { claimSets } as unknown as CompiledCredentialQuery;
    const missing = findMissingClaims(query, { format: 'dc+sd-jwt', types: [], claims });
    expect(missing).to.deep.equal([['b'], ['c'], ['d']]);
    expect(looks).to.equal(4);
  });

  it('is not parsed if it has more values than any credential', () => {
    expect(readUnverified({ format: 'dc+sd-jwt', text: unsigned(10) })?.types).to.deep.equal(['urn:card:1']);
    expect(readUnverified({ format: 'dc+sd-jwt', text: unsigned(17) })).to.equal(undefined);
  });
});
