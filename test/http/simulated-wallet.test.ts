import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { build } from 'esbuild';
import { BROWSER_OPTIONS } from '../../packages/wallet/src/browser-bundle.ts';
import { type Exchange, MISBEHAVIOURS, type Misbehaviour, type Path, SimulatedWallet } from '../../packages/wallet/src/core/index.ts';
import { minimalEnvironment } from '../support/compile-cache.ts';
import { CARD_NAMES, CARDS, type CardName, EXPECTED_VALUES, QUERIES, SimulatedWorld } from '../support/simulated-world.ts';
import { approve } from '../wallets/openid4vc/browser.ts';

/** Globals that only Node.js has are not available in the wallet code; `fetch` of Node.js itself needs them. */
const WITHOUT_NODE = 'const [Buffer, process, global, require, setImmediate, clearImmediate] = [];';
/** Code that is created from text is rejected, as by a strict content security policy. */
const PAGE = `
const tries = [];
globalThis.Function = new Proxy(Function, {
  construct: (_, args) => { tries.push(String(args)); throw new EvalError('refused'); },
  apply: (_, that, args) => { tries.push(String(args)); throw new EvalError('refused'); },
});
const { SimulatedWallet } = await import('./core.mjs');
const wallet = new SimulatedWallet();
const [offer, ...requests] = process.argv.slice(2);
const { credentials } = await wallet.accept(await wallet.readOffer(offer));
const statuses = [];
for (const request of requests) statuses.push((await wallet.present(await wallet.readRequest(request))).status);
if (tries.length > 0) throw new Error('compiled: ' + tries);
process.stdout.write(JSON.stringify({ formats: credentials.map(({ format }) => format), statuses }));
`;

describe('simulated wallet', () => {
  let world: SimulatedWorld;

  before(async () => {
    world = await SimulatedWorld.open();
  });
  after(() => world.close());

  it('shows the issuer and the credentials of an offer, in the language of the user', async () => {
    const { uri } = await world.offer(['diploma', 'licence'], { tx_code: '493536', tx_code_description: 'by mail' });
    const offer = await world.wallet.readOffer(uri);
    expect(offer.issuer.name).to.equal('Tenant acme');
    expect(offer.grant).to.equal('pre_authorized_code');
    expect(offer.txCode).to.deep.include({ description: 'by mail' });
    expect(offer.credentials.map(({ format, type }) => [format, type])).to.deep.equal([
      ['dc+sd-jwt', 'urn:example:diploma'],
      ['mso_mdoc', 'org.iso.18013.5.1.mDL'],
    ]);
    expect(offer.credentials[0]?.look).to.include({ name: 'Diploma', backgroundColor: '#12355b' });
    expect(offer.credentials[0]?.labels).to.deep.equal([{ path: ['degree'], name: 'Degree' }]);
    const french = await new SimulatedWallet({ languages: ['fr-BE'] }).readOffer(uri);
    expect(french.credentials[0]?.look.name).to.equal('Diplôme');
  });

  it('stores its credentials, with the key only in WebCrypto', () => {
    const [diploma, licence] = world.wallet.credentials;
    expect(diploma?.claims).to.deep.equal(CARDS.diploma.claims);
    expect(licence?.claims).to.deep.equal(CARDS.licence.config.claimsByNamespace);
    for (const card of world.wallet.credentials) {
      expect(card.status?.uri).to.match(/^http:/);
      expect(Date.parse(card.validity.until ?? '')).to.be.greaterThan(Date.now());
      expect(card.holder.privateKey.extractable).to.equal(false);
      expect(card.signer?.subject).to.include('C=GB');
    }
  });

  it('reports each call with its request and answer', () => {
    const token = world.exchanges.find(({ url }) => url.endsWith('/token'));
    expect(token?.method).to.equal('POST');
    expect(token?.requestHeaders).to.have.property('dpop');
    expect(token?.requestBody).to.include('pre-authorized_code');
    expect(token?.status).to.equal(200);
    expect(JSON.parse(token?.responseBody ?? '')).to.have.property('access_token');
    expect(token?.milliseconds).to.be.a('number');
  });

  it('accepts an offer with the correct transaction code, and not with another', async () => {
    const { uri } = await world.offer(['diploma'], { tx_code: '493536' });
    const otherWallet = new SimulatedWallet();
    const offer = await otherWallet.readOffer(uri);
    const error = await otherWallet.accept(offer, { txCode: '000000' }).then(
      () => 'accepted',
      (error: Error) => error.message,
    );
    expect(error).to.not.equal('accepted');
    const { credentials } = await otherWallet.accept(offer, { txCode: '493536' });
    expect(credentials).to.have.length(1);
  });

  it('follows the page of the issuer, and reports when a credential is deleted', async () => {
    const createdOffer = await world.offer(['diploma'], { flow: 'authorization_code' });
    const otherWallet = new SimulatedWallet();
    const offer = await otherWallet.readOffer(createdOffer.uri);
    expect(offer.grant).to.equal('authorization_code');
    const authorization = await otherWallet.authorize(offer);
    const { credentials } = await authorization.complete(await approve(authorization.url));
    const [card] = credentials;
    if (card === undefined) throw new Error('nothing came');
    await otherWallet.discard(card);
    expect(otherWallet.credentials).to.deep.equal([]);
    const { notifications } = await world.session(createdOffer.session);
    expect(notifications.map(({ event }: { event: string }) => event)).to.deep.equal(['credential_accepted', 'credential_deleted']);
  });

  for (const name of CARD_NAMES) {
    it(`shows the verifier and the requested claims of the ${name}`, async () => {
      const { uri, session: id } = await world.requestPresentation(name);
      const request = await world.wallet.readRequest(uri);
      expect(request.verifier.clientId).to.match(/^x509_/);
      expect(request.verifier.signer?.subject).to.match(/CN=/);
      expect(request.canBeAnswered).to.equal(true);
      const [query] = request.queries;
      expect(query?.matches.map(({ credential }) => credential.configurationId)).to.deep.equal([name]);
      expect(query?.matches[0]?.claims.map(({ path }) => path)).to.deep.equal(QUERIES[name].claims.map(({ path }) => path));
      const answer = await world.wallet.present(request);
      expect(answer.status, JSON.stringify(answer.body)).to.equal(200);
      const { status, credentials } = await world.session(id);
      expect(status).to.equal('completed');
      expect(credentials[0].values).to.deep.include(EXPECTED_VALUES[name]);
    });
  }

  it('reports that it has no matching credential', async () => {
    const request = await new SimulatedWallet().readRequest((await world.requestPresentation('diploma')).uri);
    expect([request.canBeAnswered, request.queries[0]?.matches]).to.deep.equal([false, []]);
    const message = await new SimulatedWallet().present(request).catch(({ message }: Error) => message);
    expect(message).to.equal('the wallet has no credential for "diploma": it requests urn:example:diploma');
  });

  it('finds a credential that it received after it read the request', async () => {
    const otherWallet = new SimulatedWallet();
    const request = await otherWallet.readRequest((await world.requestPresentation('licence')).uri);
    await otherWallet.accept(await otherWallet.readOffer((await world.offer(['licence'])).uri));
    const newMatch = otherWallet.matchAgain(request);
    expect([request.canBeAnswered, newMatch.canBeAnswered]).to.deep.equal([false, true]);
    expect((await otherWallet.present(newMatch)).status).to.equal(200);
  });

  it('presents an available credential when the verifier accepts one of several', async () => {
    await world.post('/verifier/config', {
      id: 'either',
      dcql_query: { credentials: [QUERIES.diploma, QUERIES.licence], credential_sets: [{ options: [['licence'], ['diploma']] }] },
      trustAnchors: [{ keyChainId: 'gb' }],
    });
    const otherWallet = new SimulatedWallet();
    await otherWallet.accept(await otherWallet.readOffer((await world.offer(['diploma'])).uri));
    const { uri, session: id } = await world.requestPresentation('either');
    const request = await otherWallet.readRequest(uri);
    expect(request.canBeAnswered).to.equal(true);
    expect(request.sets).to.deep.equal([{ options: [['licence'], ['diploma']], isRequired: true }]);
    expect((await otherWallet.present(request)).status).to.equal(200);
    const { credentials } = await world.session(id);
    expect(credentials.map((one: { id: string }) => one.id)).to.deep.equal(['diploma']);
  });

  it('works without Node APIs and without compiling code', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'vidimus-bundle-'));
    try {
      const outfile = join(folder, 'core.mjs');
      const entryPoints = ['packages/wallet/src/core/index.ts'];
      await build({ ...BROWSER_OPTIONS, entryPoints, outfile, banner: { js: WITHOUT_NODE } });
      const script = join(folder, 'page.mjs');
      writeFileSync(script, PAGE);
      const offer = await world.offer(['diploma', 'licence']);
      const requests = await Promise.all(CARD_NAMES.map((name) => world.requestPresentation(name)));
      const links = [offer.uri, ...requests.map(({ uri }) => uri)];
      const execution = await promisify(execFile)(process.execPath, [script, ...links], { env: minimalEnvironment() });
      expect(JSON.parse(execution.stdout)).to.deep.equal({ formats: ['dc+sd-jwt', 'mso_mdoc'], statuses: [200, 200] });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

describe('simulated wallet that misbehaves', () => {
  let world: SimulatedWorld;

  before(async () => {
    world = await SimulatedWorld.open();
  });
  after(() => world.close());

  type Rejection = readonly [check: string, reason: string];
  /** The expected entry in the report of the session. A replay and a decision of the user are no faults of a presentation. */
  const REJECTIONS: Readonly<Record<CardName, Readonly<Partial<Record<Misbehaviour, Rejection>>>>> = {
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
  const expectRejected = async (name: CardName, [check, reason]: Rejection, misbehave?: Misbehaviour) => {
    const { uri, session: id } = await world.requestPresentation(name);
    const options = misbehave === undefined ? {} : { misbehave };
    const answer = await world.wallet.present(await world.wallet.readRequest(uri), options);
    expect([answer.status, answer.body['error']]).to.deep.equal([400, 'invalid_request']);
    const session = await world.session(id);
    expect([session.status, session.failure.code]).to.deep.equal(['failed', 'presentation_refused']);
    expect(session.failure.message).to.include(`${name}: ${reason}`);
    const failedChecks = session.report.filter(({ result }: { result: string }) => result === 'failed');
    expect(failedChecks[0]).to.include({ id: name, check, reason });
    expect(session, 'no credential was accepted').to.not.have.property('credentials');
  };

  for (const name of CARD_NAMES) {
    describe(`with the ${name} is rejected when it`, () => {
      for (const [misbehaviour, rejection] of Object.entries(REJECTIONS[name]) as [Misbehaviour, Rejection][])
        it(misbehaviour, () => expectRejected(name, rejection, misbehaviour));

      it('replay: the first answer is accepted and the repetition is rejected', async () => {
        const { uri, session: id } = await world.requestPresentation(name);
        const answer = await world.wallet.present(await world.wallet.readRequest(uri), { misbehave: 'replay' });
        expect(answer.status).to.equal(200);
        expect(answer.repeated?.status).to.equal(400);
        expect(answer.repeated?.body).to.include({ error: 'invalid_request' });
        expect(await world.session(id)).to.include({ status: 'completed' });
      });

      it('decline: the verifier is notified that the user declined', async () => {
        const { uri, session: id } = await world.requestPresentation(name);
        const answer = await world.wallet.present(await world.wallet.readRequest(uri), { misbehave: 'decline' });
        expect(answer.status).to.equal(200);
        const { status, failure } = await world.session(id);
        expect([status, failure.code]).to.deep.equal(['failed', 'access_denied']);
      });
    });
  }

  it('supports only the tested misbehaviours', () => {
    const testedMisbehaviours = new Set([...Object.values(REJECTIONS).flatMap(Object.keys), 'replay', 'decline']);
    expect(Object.keys(MISBEHAVIOURS)).to.have.members([...testedMisbehaviours]);
  });

  it('rejects a misbehaviour that the format does not support, instead of behaving correctly', async () => {
    const { uri, session: id } = await world.requestPresentation('licence');
    const request = await world.wallet.readRequest(uri);
    const message = await world.wallet.present(request, { misbehave: 'old-key-binding' }).catch(({ message }: Error) => message);
    expect(message).to.equal('"old-key-binding" is not available for a credential of the format mso_mdoc');
    expect((await world.session(id)).status).to.equal('fetched');
  });

  it('discloses more or fewer claims on request of its user', async () => {
    const [credential] = world.wallet.credentials;
    if (credential === undefined) throw new Error('no card');
    const presentClaims = async (disclose: readonly Path[]) => {
      const { uri, session: id } = await world.requestPresentation('diploma');
      await world.wallet.present(await world.wallet.readRequest(uri), { choice: { diploma: { credential, disclose } } });
      return world.session(id);
    };
    const paths = QUERIES.diploma.claims.map(({ path }) => path);
    expect((await presentClaims([...paths, ['languages', 1]])).credentials[0].values).to.deep.include({
      ...EXPECTED_VALUES.diploma,
      languages: ['fr'],
    });
    expect((await presentClaims(paths.slice(1))).failure.message).to.include('missing_claim');
  });

  // The following steps invalidate the cards.
  describe('after its credential was revoked', () => {
    for (const name of CARD_NAMES)
      it(`presents the ${name} and is rejected`, async () => {
        await world.post('/session/revoke', { sessionId: world.offers[name], status: 1 });
        await expectRejected(name, ['status', 'status_revoked']);
      });
  });
});

describe('simulated wallet under attack', () => {
  let world: SimulatedWorld;

  before(async () => {
    world = await SimulatedWorld.open();
  });
  after(() => world.close());

  /** A wallet whose responses from some addresses are changed in transit. */
  const createAttackedWallet = (pathPattern: RegExp, change: (body: string) => string) => {
    const exchanges: Exchange[] = [];
    const attackedFetch = async (input: Parameters<typeof globalThis.fetch>[0]) => {
      const answer = await globalThis.fetch(input);
      if (!pathPattern.test(new URL((input as Request).url).pathname)) return answer;
      return new Response(change(await answer.text()), { status: answer.status, headers: answer.headers });
    };
    return { heard: exchanges, wallet: new SimulatedWallet({ fetch: attackedFetch, onExchange: (one) => exchanges.push(one) }) };
  };
  const resultOf = (work: Promise<unknown>) =>
    work.then(
      () => 'accepted',
      ({ message }: Error) => message,
    );
  const inCredential = (change: (text: string) => string) => (body: string) => {
    const answer = JSON.parse(body) as { credentials?: { credential: string }[] };
    if (answer.credentials === undefined) return body;
    return JSON.stringify({ ...answer, credentials: answer.credentials.map(({ credential }) => ({ credential: change(credential) })) });
  };
  const asBytes = (text: string, from: string, to: string) =>
    Buffer.from(Buffer.from(text, 'base64url').toString('latin1').replace(from, to), 'latin1').toString('base64url');
  const salted = (value: string) => Buffer.from(JSON.stringify(['salt', 'degree', value])).toString('base64url');
  const FORGERIES: readonly [string, CardName, (text: string) => string, RegExp][] = [
    ['unsigned claims', 'diploma', (text) => `${text}${salted('Physics')}~`, /has no signed digest/],
    ['another signature', 'diploma', (text) => text.replace(/\.[^.~]{10}([^.~]+~)/, '.AAAAAAAAAA$1'), /signature/],
    ['an unsigned element', 'licence', (text) => asBytes(text, 'Lovelace', 'Lovelady'), /family_name differs from the signed digest/],
    ['another document type', 'licence', (text) => asBytes(text, '5.1.mDL', '5.1.mDX'), /does not belong to the certificate/],
  ];
  for (const [description, name, change, message] of FORGERIES)
    it(`rejects a ${name} with ${description}`, async () => {
      const { wallet: attackedWallet } = createAttackedWallet(/\/credential$/, inCredential(change));
      const offer = await attackedWallet.readOffer((await world.offer([name])).uri);
      expect(await resultOf(attackedWallet.accept(offer))).to.match(message);
      expect(attackedWallet.credentials).to.deep.equal([]);
    });

  it('rejects a request that was changed in transit', async () => {
    const { wallet: attackedWallet } = createAttackedWallet(/\/request\//, (jwt) => {
      const [header, payload = '', signature] = jwt.split('.');
      return [header, asBytes(payload, '"degree"', '"salary"'), signature].join('.');
    });
    expect(await resultOf(attackedWallet.readRequest((await world.requestPresentation('diploma')).uri))).to.match(/signature|verif/i);
  });

  it('rejects an endless answer, and reports a call without an answer', async () => {
    const { wallet: attackedWallet, heard: exchanges } = createAttackedWallet(/./, () => ' '.repeat(21 * 1024 * 1024));
    expect(await resultOf(attackedWallet.readOffer((await world.offer(['diploma'])).uri))).to.not.equal('accepted');
    expect(exchanges.at(-1)?.error).to.match(/more than 20971520 bytes/);
    const unreachableOffer = 'openid-credential-offer://?credential_offer_uri=http%3A%2F%2F127.0.0.1%3A9%2F';
    expect(await resultOf(attackedWallet.readOffer(unreachableOffer))).to.not.equal('accepted');
    expect(exchanges.at(-1)).to.include({ url: 'http://127.0.0.1:9/' }).and.not.have.property('status');
  });
});
