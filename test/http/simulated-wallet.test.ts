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

/** What only Node has is out of reach; its own `fetch` needs it. */
const WITHOUT_NODE = 'const [Buffer, process, global, require, setImmediate, clearImmediate] = [];';
/** Code that is made of text is refused, as a strict content security policy does. */
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
    const read = await world.wallet.readOffer(uri);
    expect(read.issuer.name).to.equal('Tenant acme');
    expect(read.grant).to.equal('pre_authorized_code');
    expect(read.txCode).to.deep.include({ description: 'by mail' });
    expect(read.credentials.map(({ format, type }) => [format, type])).to.deep.equal([
      ['dc+sd-jwt', 'urn:example:diploma'],
      ['mso_mdoc', 'org.iso.18013.5.1.mDL'],
    ]);
    expect(read.credentials[0]?.look).to.include({ name: 'Diploma', backgroundColor: '#12355b' });
    expect(read.credentials[0]?.labels).to.deep.equal([{ path: ['degree'], name: 'Degree' }]);
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
    const other = new SimulatedWallet();
    const read = await other.readOffer(uri);
    const refused = await other.accept(read, { txCode: '000000' }).then(
      () => 'taken',
      (error: Error) => error.message,
    );
    expect(refused).to.not.equal('taken');
    const { credentials } = await other.accept(read, { txCode: '493536' });
    expect(credentials).to.have.length(1);
  });

  it('follows the page of the issuer, and reports when a credential is deleted', async () => {
    const made = await world.offer(['diploma'], { flow: 'authorization_code' });
    const other = new SimulatedWallet();
    const read = await other.readOffer(made.uri);
    expect(read.grant).to.equal('authorization_code');
    const authorization = await other.authorize(read);
    const { credentials } = await authorization.complete(await approve(authorization.url));
    const [card] = credentials;
    if (card === undefined) throw new Error('nothing came');
    await other.discard(card);
    expect(other.credentials).to.deep.equal([]);
    const { notifications } = await world.session(made.session);
    expect(notifications.map(({ event }: { event: string }) => event)).to.deep.equal(['credential_accepted', 'credential_deleted']);
  });

  for (const name of CARD_NAMES) {
    it(`shows the verifier and the requested claims of the ${name}`, async () => {
      const { uri, session: id } = await world.requestPresentation(name);
      const read = await world.wallet.readRequest(uri);
      expect(read.verifier.clientId).to.match(/^x509_/);
      expect(read.verifier.signer?.subject).to.match(/CN=/);
      expect(read.canBeAnswered).to.equal(true);
      const [query] = read.queries;
      expect(query?.matches.map(({ credential }) => credential.configurationId)).to.deep.equal([name]);
      expect(query?.matches[0]?.claims.map(({ path }) => path)).to.deep.equal(QUERIES[name].claims.map(({ path }) => path));
      const answer = await world.wallet.present(read);
      expect(answer.status, JSON.stringify(answer.body)).to.equal(200);
      const { status, credentials } = await world.session(id);
      expect(status).to.equal('completed');
      expect(credentials[0].values).to.deep.include(EXPECTED_VALUES[name]);
    });
  }

  it('reports that it has no matching credential', async () => {
    const read = await new SimulatedWallet().readRequest((await world.requestPresentation('diploma')).uri);
    expect([read.canBeAnswered, read.queries[0]?.matches]).to.deep.equal([false, []]);
    const said = await new SimulatedWallet().present(read).catch(({ message }: Error) => message);
    expect(said).to.equal('the wallet has no credential for "diploma": it requests urn:example:diploma');
  });

  it('finds a credential that it received after it read the request', async () => {
    const other = new SimulatedWallet();
    const read = await other.readRequest((await world.requestPresentation('licence')).uri);
    await other.accept(await other.readOffer((await world.offer(['licence'])).uri));
    const again = other.matchAgain(read);
    expect([read.canBeAnswered, again.canBeAnswered]).to.deep.equal([false, true]);
    expect((await other.present(again)).status).to.equal(200);
  });

  it('presents an available credential when the verifier accepts one of several', async () => {
    await world.post('/verifier/config', {
      id: 'either',
      dcql_query: { credentials: [QUERIES.diploma, QUERIES.licence], credential_sets: [{ options: [['licence'], ['diploma']] }] },
      trustAnchors: [{ keyChainId: 'gb' }],
    });
    const other = new SimulatedWallet();
    await other.accept(await other.readOffer((await world.offer(['diploma'])).uri));
    const { uri, session: id } = await world.requestPresentation('either');
    const read = await other.readRequest(uri);
    expect(read.canBeAnswered).to.equal(true);
    expect(read.sets).to.deep.equal([{ options: [['licence'], ['diploma']], isRequired: true }]);
    expect((await other.present(read)).status).to.equal(200);
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
      const offered = await world.offer(['diploma', 'licence']);
      const asked = await Promise.all(CARD_NAMES.map((name) => world.requestPresentation(name)));
      const links = [offered.uri, ...asked.map(({ uri }) => uri)];
      const ran = await promisify(execFile)(process.execPath, [script, ...links], { env: minimalEnvironment() });
      expect(JSON.parse(ran.stdout)).to.deep.equal({ formats: ['dc+sd-jwt', 'mso_mdoc'], statuses: [200, 200] });
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

  type Refusal = readonly [check: string, reason: string];
  /** What the report of the session says of each. A replay and a refusal of the user are no faults of a presentation. */
  const REFUSALS: Readonly<Record<CardName, Readonly<Partial<Record<Misbehaviour, Refusal>>>>> = {
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
  const expectRefused = async (name: CardName, [check, reason]: Refusal, misbehave?: Misbehaviour) => {
    const { uri, session: id } = await world.requestPresentation(name);
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

  for (const name of CARD_NAMES) {
    describe(`with the ${name} is rejected when it`, () => {
      for (const [misbehave, refusal] of Object.entries(REFUSALS[name]) as [Misbehaviour, Refusal][])
        it(misbehave, () => expectRefused(name, refusal, misbehave));

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
    const tested = new Set([...Object.values(REFUSALS).flatMap(Object.keys), 'replay', 'decline']);
    expect(Object.keys(MISBEHAVIOURS)).to.have.members([...tested]);
  });

  it('rejects a misbehaviour that the format does not support, instead of behaving correctly', async () => {
    const { uri, session: id } = await world.requestPresentation('licence');
    const read = await world.wallet.readRequest(uri);
    const said = await world.wallet.present(read, { misbehave: 'old-key-binding' }).catch(({ message }: Error) => message);
    expect(said).to.equal('"old-key-binding" is not available for a credential of the format mso_mdoc');
    expect((await world.session(id)).status).to.equal('fetched');
  });

  it('discloses more or fewer claims on request of its user', async () => {
    const [credential] = world.wallet.credentials;
    if (credential === undefined) throw new Error('no card');
    const shown = async (disclose: readonly Path[]) => {
      const { uri, session: id } = await world.requestPresentation('diploma');
      await world.wallet.present(await world.wallet.readRequest(uri), { choice: { diploma: { credential, disclose } } });
      return world.session(id);
    };
    const asked = QUERIES.diploma.claims.map(({ path }) => path);
    expect((await shown([...asked, ['languages', 1]])).credentials[0].values).to.deep.include({
      ...EXPECTED_VALUES.diploma,
      languages: ['fr'],
    });
    expect((await shown(asked.slice(1))).failure.message).to.include('missing_claim');
  });

  // The cards are of no use after this.
  describe('after its credential was revoked', () => {
    for (const name of CARD_NAMES)
      it(`presents the ${name} and is rejected`, async () => {
        await world.post('/session/revoke', { sessionId: world.offers[name], status: 1 });
        await expectRefused(name, ['status', 'status_revoked']);
      });
  });
});

describe('simulated wallet under attack', () => {
  let world: SimulatedWorld;

  before(async () => {
    world = await SimulatedWorld.open();
  });
  after(() => world.close());

  /** A wallet between which and the service somebody changes what is answered at some addresses. */
  const deceived = (at: RegExp, change: (body: string) => string) => {
    const heard: Exchange[] = [];
    const fetch = async (input: Parameters<typeof globalThis.fetch>[0]) => {
      const answer = await globalThis.fetch(input);
      if (!at.test(new URL((input as Request).url).pathname)) return answer;
      return new Response(change(await answer.text()), { status: answer.status, headers: answer.headers });
    };
    return { heard, wallet: new SimulatedWallet({ fetch, onExchange: (one) => heard.push(one) }) };
  };
  const saidOf = (work: Promise<unknown>) =>
    work.then(
      () => 'taken',
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
  const FORGED: readonly [string, CardName, (text: string) => string, RegExp][] = [
    ['unsigned claims', 'diploma', (text) => `${text}${salted('Physics')}~`, /has no signed digest/],
    ['another signature', 'diploma', (text) => text.replace(/\.[^.~]{10}([^.~]+~)/, '.AAAAAAAAAA$1'), /signature/],
    ['an unsigned element', 'licence', (text) => asBytes(text, 'Lovelace', 'Lovelady'), /family_name differs from the signed digest/],
    ['another document type', 'licence', (text) => asBytes(text, '5.1.mDL', '5.1.mDX'), /does not belong to the certificate/],
  ];
  for (const [what, name, change, message] of FORGED)
    it(`rejects a ${name} with ${what}`, async () => {
      const { wallet: other } = deceived(/\/credential$/, inCredential(change));
      const read = await other.readOffer((await world.offer([name])).uri);
      expect(await saidOf(other.accept(read))).to.match(message);
      expect(other.credentials).to.deep.equal([]);
    });

  it('rejects a request that was changed in transit', async () => {
    const { wallet: other } = deceived(/\/request\//, (jwt) => {
      const [header, payload = '', signature] = jwt.split('.');
      return [header, asBytes(payload, '"degree"', '"salary"'), signature].join('.');
    });
    expect(await saidOf(other.readRequest((await world.requestPresentation('diploma')).uri))).to.match(/signature|verif/i);
  });

  it('rejects an endless answer, and reports a call without an answer', async () => {
    const { wallet: other, heard } = deceived(/./, () => ' '.repeat(21 * 1024 * 1024));
    expect(await saidOf(other.readOffer((await world.offer(['diploma'])).uri))).to.not.equal('taken');
    expect(heard.at(-1)?.error).to.match(/more than 20971520 bytes/);
    const gone = 'openid-credential-offer://?credential_offer_uri=http%3A%2F%2F127.0.0.1%3A9%2F';
    expect(await saidOf(other.readOffer(gone))).to.not.equal('taken');
    expect(heard.at(-1)).to.include({ url: 'http://127.0.0.1:9/' }).and.not.have.property('status');
  });
});
