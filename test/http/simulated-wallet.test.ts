import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { build } from 'esbuild';
import { BROWSER_OPTIONS } from '../../tools/wallet/browser-bundle.ts';
import { SimulatedWallet } from '../../tools/wallet/core/index.ts';
import { bareEnvironment } from '../support/compile-cache.ts';
import { CARDS, NAMES, QUERIES, SimulatedWorld, TOLD } from '../support/simulated-world.ts';
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

describe('the simulated wallet', () => {
  let world: SimulatedWorld;

  before(async () => {
    world = await SimulatedWorld.open();
  });
  after(() => world.close());

  it('says who offers what, in the language of the user', async () => {
    const { uri } = await world.offer(['diploma', 'licence'], {
      tx_code: '493536',
      tx_code_description: 'by mail',
    });
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

  it('reads what it holds, with the key in WebCrypto only', () => {
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

  it('tells of each call with what went over the wire', () => {
    const token = world.exchanges.find(({ url }) => url.endsWith('/token'));
    expect(token?.method).to.equal('POST');
    expect(token?.requestHeaders).to.have.property('dpop');
    expect(token?.requestBody).to.include('pre-authorized_code');
    expect(token?.status).to.equal(200);
    expect(JSON.parse(token?.responseBody ?? '')).to.have.property('access_token');
    expect(token?.milliseconds).to.be.a('number');
  });

  it('accepts with a transaction code, and not with another', async () => {
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

  it('goes through the page of the issuer, and tells it when a card is thrown away', async () => {
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
    expect(notifications.map(({ event }: { event: string }) => event)).to.deep.equal([
      'credential_accepted',
      'credential_deleted',
    ]);
  });

  for (const name of NAMES) {
    it(`says who asks for what of the ${name}, and shows that`, async () => {
      const { uri, session: id } = await world.ask(name);
      const read = await world.wallet.readRequest(uri);
      expect(read.verifier.clientId).to.match(/^x509_/);
      expect(read.verifier.signer?.subject).to.match(/CN=/);
      expect(read.canBeAnswered).to.equal(true);
      const [query] = read.queries;
      expect(query?.matches.map(({ credential }) => credential.configurationId)).to.deep.equal([name]);
      expect(query?.matches[0]?.claims.map(({ path }) => path)).to.deep.equal(
        QUERIES[name].claims.map(({ path }) => path),
      );
      const answer = await world.wallet.present(read);
      expect(answer.status, JSON.stringify(answer.body)).to.equal(200);
      const { status, credentials } = await world.session(id);
      expect(status).to.equal('completed');
      expect(credentials[0].values).to.deep.include(TOLD[name]);
    });
  }

  it('says that it has no card', async () => {
    const read = await new SimulatedWallet().readRequest((await world.ask('diploma')).uri);
    expect([read.canBeAnswered, read.queries[0]?.matches]).to.deep.equal([false, []]);
    const said = await new SimulatedWallet().present(read).catch(({ message }: Error) => message);
    expect(said).to.equal('the wallet has no card that answers "diploma": it asks for urn:example:diploma');
  });

  it('finds a card that it collects after it read the request', async () => {
    const other = new SimulatedWallet();
    const read = await other.readRequest((await world.ask('licence')).uri);
    await other.accept(await other.readOffer((await world.offer(['licence'])).uri));
    const again = other.matchAgain(read);
    expect([read.canBeAnswered, again.canBeAnswered]).to.deep.equal([false, true]);
    expect((await other.present(again)).status).to.equal(200);
  });

  it('answers with what it has where the verifier takes one of several', async () => {
    await world.post('/verifier/config', {
      id: 'either',
      dcql_query: {
        credentials: [QUERIES.diploma, QUERIES.licence],
        credential_sets: [{ options: [['licence'], ['diploma']] }],
      },
      trustAnchors: [{ keyChainId: 'gb' }],
    });
    const other = new SimulatedWallet();
    await other.accept(await other.readOffer((await world.offer(['diploma'])).uri));
    const { uri, session: id } = await world.ask('either');
    const read = await other.readRequest(uri);
    expect(read.canBeAnswered).to.equal(true);
    expect(read.sets).to.deep.equal([{ options: [['licence'], ['diploma']], isRequired: true }]);
    expect((await other.present(read)).status).to.equal(200);
    const { credentials } = await world.session(id);
    expect(credentials.map((one: { id: string }) => one.id)).to.deep.equal(['diploma']);
  });

  it('does all of it without anything of Node, and without compiling code', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'vidimus-bundle-'));
    try {
      const outfile = join(folder, 'core.mjs');
      const entryPoints = ['tools/wallet/core/index.ts'];
      await build({ ...BROWSER_OPTIONS, entryPoints, outfile, banner: { js: WITHOUT_NODE } });
      const script = join(folder, 'page.mjs');
      writeFileSync(script, PAGE);
      const offered = await world.offer(['diploma', 'licence']);
      const asked = await Promise.all(NAMES.map((name) => world.ask(name)));
      const links = [offered.uri, ...asked.map(({ uri }) => uri)];
      const ran = await promisify(execFile)(process.execPath, [script, ...links], { env: bareEnvironment() });
      expect(JSON.parse(ran.stdout)).to.deep.equal({
        formats: ['dc+sd-jwt', 'mso_mdoc'],
        statuses: [200, 200],
      });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
