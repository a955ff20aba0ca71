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
import { ACME, type PresentationChanges, query, VCT, type World } from './kit.ts';
import { cardQueries, DAY_MS, deviceResponse, LICENCE, NAMESPACE, summarize, TrialWorld, withoutKeyBinding } from './trial-kit.ts';

const LISTS = 'https://issuer.example/lists/1';

describe('trial of a presentation request', () => {
  let kit: TrialWorld;
  let world: World;
  beforeEach(async () => {
    kit = await TrialWorld.make();
    ({ world } = kit);
  });
  afterEach(() => sinon.restore());

  const tryPresentation = (...parameters: Parameters<TrialWorld['tryPresentation']>) => kit.tryPresentation(...parameters);
  const card = (changes: PresentationChanges = {}) => kit.card(changes);

  async function serveStatus(status: number) {
    const lst = compressList(packEntries(2, 100, [{ index: 1, status }]));
    const payload = { sub: LISTS, iat: world.seconds, exp: world.seconds + 3600, status_list: { bits: 2, lst } };
    const jwt = await signJwt(world.kms, { chain: world.issuer, typ: 'statuslist+jwt', payload });
    world.remote.answer = () => ({ status: 200, contentType: 'application/statuslist+jwt', body: Buffer.from(jwt) });
  }
  const withStatus = { visible: { status: { status_list: { idx: 1, uri: LISTS } } } };

  it('reports that a valid credential matches, and lists the skipped checks', async () => {
    await world.configure();
    for (const text of [card(), withoutKeyBinding(card()), `\n${withoutKeyBinding(card())} `]) {
      const trial = await tryPresentation(text);
      expect(summarize(trial)).to.deep.equal([[['card', 'passed']]]);
      expect(trial.missing).to.deep.equal([]);
      expect(trial.untried).to.deep.equal(['nonce', 'audience', 'holder binding present', 'key binding', 'transaction data']);
      const checks = trial.presentations[0]?.queries[0]?.report.map(({ check }) => check);
      expect(checks).to.include.members(['issuer signature', 'issuer trust', 'validity period', 'status']);
      expect(checks).to.not.include.members(['key binding']);
    }
  });

  it('returns paths of claims, and never their values', async () => {
    await world.configure();
    const trial = await tryPresentation(card({ claims: { name: 'Erika Secret', age: 4_242_424 } }));
    expect(trial.presentations[0]?.shown).to.have.deep.members([['name'], ['age'], ['over18']]);
    expect(trial.presentations[0]?.types).to.deep.equal([VCT]);
    expect(JSON.stringify(trial)).to.not.match(/Erika|4242424/);
  });

  it('stores nothing', async () => {
    await world.configure();
    const storedState = () => stepsOf(world.store, ACME).state();
    const before = await storedState();
    const commit = sinon.spy(world.store, 'commit');
    await tryPresentation(card());
    expect(commit.callCount).to.equal(0);
    expect(await storedState()).to.deep.equal(before);
  });

  const cases: [string, () => string | Promise<string>, string][] = [
    [
      'a changed claim',
      () =>
        card().replace(/~([^~]+)~/, (_, part: string) => {
          const [salt, name] = JSON.parse(Buffer.from(part, 'base64url').toString());
          return `~${Buffer.from(JSON.stringify([salt, name, 'other'])).toString('base64url')}~`;
        }),
      'unreferenced_disclosure',
    ],
    ['a changed signature', () => card({ issuerSignature: (signature) => Buffer.from(signature).reverse() }), 'issuer_signature'],
    ['an issuer that is not trusted', async () => card({ issuer: await world.keyChain('foreign', 'x', ['signing']) }), 'untrusted_chain'],
    ['an expired credential', () => card({ visible: { exp: world.seconds - 100 } }), 'credential_expired'],
    ['a credential that is not yet valid', () => card({ visible: { nbf: world.seconds + 1_000 } }), 'credential_not_yet_valid'],
    ['another type', () => card({ visible: { vct: 'urn:other' } }), 'type_mismatch'],
    ['an undisclosed claim', () => withoutKeyBinding(card()).replace(/~.*~/, '~'), 'missing_claim'],
    [
      'a revoked credential',
      async () => {
        await serveStatus(1);
        return card(withStatus);
      },
      'status_revoked',
    ],
    [
      'a suspended credential',
      async () => {
        await serveStatus(2);
        return card(withStatus);
      },
      'status_suspended',
    ],
    ['a credential whose status list is missing', () => card(withStatus), 'status_unavailable'],
    ['text that resembles an SD-JWT', () => 'e30.e30.c2ln~', 'issuer_typ'],
    ['half of an SD-JWT', () => `${card().slice(0, 20)}~`, 'malformed'],
  ];
  for (const [description, buildPresentation, reason] of cases) {
    it(`rejects ${description}`, async () => {
      await world.configure();
      const trial = await tryPresentation(await buildPresentation());
      expect(summarize(trial)).to.deep.equal([[['card', reason]]]);
      expect(trial.missing).to.deep.equal(['card']);
      const failedCheck = trial.presentations[0]?.queries[0]?.report.at(-1);
      expect(failedCheck).to.include({ result: 'failed', reason });
    });
  }

  it('names every missing claim, even if the issuer is not trusted', async () => {
    const claims = [{ path: ['name'] }, { path: ['address', 'street'] }, { path: ['nothing'] }];
    await world.configure({ dcql_query: query({ id: 'card', claims }) });
    const otherChain = await world.keyChain('foreign', 'x', ['signing']);
    const trial = await tryPresentation(card({ issuer: otherChain }));
    const [part] = trial.presentations[0]?.queries ?? [];
    expect(part?.reason).to.equal('untrusted_chain');
    expect(part?.missing).to.deep.equal([['address', 'street'], ['nothing']]);
  });

  it('verifies a list of valid presentations only', async () => {
    await world.configure();
    await serveStatus(1);
    await tryPresentation(card({ ...withStatus, visible: { ...withStatus.visible, vct: 'urn:other' } }));
    expect(world.remote.calls).to.deep.equal([]);
    await serveStatus(0);
    expect(summarize(await tryPresentation(card(withStatus)))).to.deep.equal([[['card', 'passed']]]);
  });

  it('applies the profile of the tenant, except the binding to a request', async () => {
    await world.configure();
    await world.store.forTenant(ACME, async ({ tenant }) => tenant.save({ ...(await tenant.get()), profile: 'haip' }), { by: 'system' });
    expect(summarize(await tryPresentation(withoutKeyBinding(card())))).to.deep.equal([[['card', 'passed']]]);
  });
});

describe('presentation in a trial', () => {
  let kit: TrialWorld;
  let world: World;
  beforeEach(async () => {
    kit = await TrialWorld.make();
    ({ world } = kit);
  });

  const tryPresentation = (...parameters: Parameters<TrialWorld['tryPresentation']>) => kit.tryPresentation(...parameters);
  const card = (changes: PresentationChanges = {}) => kit.card(changes);

  it('accepts an mdoc in every encoding', async () => {
    await world.configure({ dcql_query: { credentials: [LICENCE] } });
    const licence = kit.licence();
    const bytes = Buffer.from(licence, 'base64url');
    const response = deviceResponse(licence);
    for (const text of [
      licence,
      bytes.toString('hex'),
      bytes.toString('base64'),
      response.toString('base64url'),
      JSON.stringify({ vp_token: { licence: [response.toString('base64url')] } }),
      JSON.stringify({ protocol: 'x', data: { vp_token: { licence: [response.toString('base64url')] } } }),
    ]) {
      const trial = await tryPresentation(text);
      expect(summarize(trial), text.slice(0, 30)).to.deep.equal([[['licence', 'passed']]]);
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
    const changedLicence = Buffer.from(kit.licence(), 'base64url');
    changedLicence.write('Urika', changedLicence.indexOf('Erika'));
    const reasons = [];
    for (const text of [
      changedLicence.toString('hex'),
      kit.licence({ signed: new Date(world.clock.time - 2 * DAY_MS) }),
      kit.licence({ issuer: await world.keyChain('foreign', 'x', ['signing']) }),
      kit.licence({ docType: 'org.example.other.1' }),
    ])
      reasons.push(summarize(await tryPresentation(text))[0]?.[0]?.[1]);
    expect(reasons).to.deep.equal(['digest_mismatch', 'credential_expired', 'untrusted_chain', 'doctype_mismatch']);
  });

  it('lists missing credentials, and matches each query with its credential', async () => {
    await world.configure({ dcql_query: { credentials: [...cardQueries('one', 'two'), LICENCE] } });
    const twoDocuments = deviceResponse(kit.licence(), kit.licence()).toString('base64url');
    const mdocs = await tryPresentation(twoDocuments);
    expect(summarize(mdocs)).to.deep.equal([[['licence', 'passed']], [['licence', 'passed']]]);
    expect(mdocs.missing).to.deep.equal(['one', 'two']);
    expect(summarize(await tryPresentation(card()))).to.deep.equal([
      [
        ['one', 'passed'],
        ['two', 'passed'],
      ],
    ]);
    const namedResult = await tryPresentation(JSON.stringify({ vp_token: { two: [card()], licence: kit.licence() } }));
    expect(summarize(namedResult)).to.deep.equal([[['two', 'passed']], [['licence', 'passed']]]);
    expect(namedResult.missing).to.deep.equal(['one']);
  });

  const unreadable: [string, string, RegExp][] = [
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
  for (const [description, text, message] of unreadable) {
    it(`rejects ${description}`, async () => {
      await world.configure();
      const failure = await tryPresentation(text).then(
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
    const failure = await tryPresentation(JSON.stringify({ a: [card(), card()] })).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(failure).to.be.instanceOf(Failure).and.to.include({ code: 'invalid_input' });
  });

  it('is only available to callers with the right', async () => {
    await world.configure();
    for (const attempt of [tryPresentation(card(), ['other']), tryPresentation(card(), null, 'unknown')]) {
      const failure = await attempt.then(
        () => undefined,
        (error: unknown) => error,
      );
      expect(failure).to.be.instanceOf(Failure).and.to.include({ code: 'not_found' });
    }
  });
});

const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** An unsigned credential, as any client may send. */
function unsignedCredential(lists: number): string {
  const disclosures = Array.from({ length: lists }, (_, index) => encoded([`salt-${index}`, Array(600).fill({})]));
  const digestClaims = disclosures.map((text) => ({ '...': hash('sha256', text, 'base64url') }));
  const header = encoded({ alg: 'ES256', typ: 'dc+sd-jwt' });
  return `${header}.${encoded({ vct: 'urn:card:1', all: digestClaims })}.${'A'.repeat(86)}~${disclosures.join('~')}~`;
}

describe('large text in a trial', () => {
  it('is evaluated once for each claim, for any number of sets', () => {
    let lookups = 0;
    const claims = new Proxy(
      {},
      {
        getOwnPropertyDescriptor: () => {
          lookups++;
          return undefined;
        },
      },
    );
    const compiledClaims = ['a', 'b', 'c', 'd'].map((name) => ({ path: [name] }) as unknown as CompiledClaim);
    const claimSets = compiledClaims.map((part) => compiledClaims.filter((otherClaim) => otherClaim !== part));
    const query = { claimSets } as unknown as CompiledCredentialQuery;
    const missingClaims = findMissingClaims(query, { format: 'dc+sd-jwt', types: [], claims });
    expect(missingClaims).to.deep.equal([['b'], ['c'], ['d']]);
    expect(lookups).to.equal(4);
  });

  it('is not parsed if it has more values than any credential', () => {
    expect(readUnverified({ format: 'dc+sd-jwt', text: unsignedCredential(10) })?.types).to.deep.equal(['urn:card:1']);
    expect(readUnverified({ format: 'dc+sd-jwt', text: unsignedCredential(17) })).to.equal(undefined);
  });
});
