import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseEnv } from 'node:util';
import { expect } from 'chai';
import { VidimusClient } from '../../packages/client/src/index.ts';
import { freePort, type ServiceProcess, startProcess } from '../demo/process.ts';
import { runProgram, startProgram, stopPrograms, waitForAnswer } from '../support/programs.ts';
import { readableClaims } from '../wallets/openid4vc/credentials.ts';
import { Openid4vcWallet, unnotified } from '../wallets/openid4vc/wallet.ts';

const EXAMPLES = fileURLToPath(new URL('../../examples/', import.meta.url));

describe('examples', () => {
  let folder: string;
  let address: string;
  let service: ServiceProcess;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'vidimus-examples-'));
    const port = await freePort(createServer);
    address = `http://localhost:${port}`;
    const environment = { PORT: String(port), DATA_FOLDER: folder, OUTBOUND_ALLOW: '127.0.0.1/32' };
    service = await startProcess({ address, environment });
  });
  afterEach(stopPrograms);
  after(async () => {
    await service?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const node = { PATH: process.env['PATH'] };
  /** Creates a tenant with the script of the examples. */
  const tenant = async (id: string) => {
    const environment = { ...node, VIDIMUS_URL: address, AUTH_CLIENT_ID: service.root.clientId, AUTH_CLIENT_SECRET: service.root.secret };
    const tenantRun = await runProgram(process.execPath, ['make-tenant.mjs', id], { cwd: EXAMPLES, environment });
    expect(tenantRun.code, tenantRun.output).to.equal(0);
    return parseEnv(tenantRun.output) as Record<string, string>;
  };
  describe('make-tenant', () => {
    const makeTenant = (args: readonly string[], environment: Record<string, string> = {}) =>
      runProgram(process.execPath, ['make-tenant.mjs', ...args], {
        cwd: EXAMPLES,
        environment: {
          ...node,
          VIDIMUS_URL: address,
          AUTH_CLIENT_ID: service.root.clientId,
          AUTH_CLIENT_SECRET: service.root.secret,
          ...environment,
        },
      });
    const expectRejected = async (tenantRun: ReturnType<typeof makeTenant>, expectedMessage: RegExp) => {
      const { code, output } = await tenantRun;
      expect([code, output]).to.deep.equal([1, output.split('\n', 1)[0]?.concat('\n')]);
      expect(output).to.match(expectedMessage);
    };

    it('writes a file that only its owner can read, and never overwrites an existing file', async () => {
      const file = join(folder, 'made.env');
      expect(await makeTenant(['made', file])).to.deep.equal({ code: 0, output: '' });
      expect(statSync(file).mode & 0o777).to.equal(0o600);
      const text = readFileSync(file, 'utf8');
      expect(await createClient(parseEnv(text) as Record<string, string>).get('/issuer/credentials')).to.deep.equal([]);
      // No call is made and no tenant is created: the address is unreachable.
      await expectRejected(makeTenant(['another', file], { VIDIMUS_URL: 'http://localhost:1' }), /made\.env is there already/);
      expect(readFileSync(file, 'utf8')).to.equal(text);
    });

    it('prints the fault and the remedy in one line, and leaves no file', async () => {
      const file = join(folder, 'none.env');
      expect((await makeTenant(['twice'])).code).to.equal(0);
      await expectRejected(makeTenant(['twice', file]), /a tenant with this id already exists; .* another id than "twice"$/m);
      const unreachableMessage = /cannot be reached\. Start the service; .* set VIDIMUS_URL/;
      await expectRejected(makeTenant(['one', file], { VIDIMUS_URL: 'http://localhost:1' }), unreachableMessage);
      await expectRejected(makeTenant(['one', file], { AUTH_CLIENT_SECRET: 'x'.repeat(32) }), /does not know this AUTH_CLIENT_ID/);
      await expectRejected(makeTenant(['one', file], { AUTH_CLIENT_SECRET: '' }), /run node with --env-file=data/);
      await expectRejected(makeTenant(['Not an id', file]), /^make-tenant: invalid_input: /);
      await expectRejected(makeTenant(['one', join(folder, 'nowhere', 'x.env')]), /ENOENT/);
      expect(existsSync(file)).to.equal(false);
    });
  });

  const start = async (file: string, environment: Record<string, string>) => {
    const port = await freePort(createServer);
    const shopEnvironment = { ...node, ...environment, PORT: String(port) };
    const program = startProgram(process.execPath, [file], { cwd: EXAMPLES, environment: shopEnvironment });
    await waitForAnswer(program, `http://127.0.0.1:${port}/`, { status: file.startsWith('shop') ? 200 : 404 });
    return { program, url: `http://127.0.0.1:${port}` };
  };
  const createClient = (settings: Record<string, string>) =>
    new VidimusClient({
      url: address,
      clientId: settings['VIDIMUS_CLIENT_ID'] ?? '',
      clientSecret: settings['VIDIMUS_CLIENT_SECRET'] ?? '',
    });

  describe('shop', () => {
    let shop: { program: ReturnType<typeof startProgram>; url: string };
    let issuer: VidimusClient;
    let settings: Record<string, string>;

    before(async () => {
      issuer = createClient(await tenant('state'));
      await issuer.post('/issuer/credentials', {
        body: {
          id: 'pid',
          config: { format: 'dc+sd-jwt', display: [{ name: 'PID', locale: 'en' }] },
          vct: 'urn:eudi:pid:1',
          claims: { given_name: 'Ada', age_equal_or_over: { 18: true } },
          disclosureFrame: { _sd: ['given_name', 'age_equal_or_over'], age_equal_or_over: { _sd: ['18'] } },
        },
      });
      const { rootCertificate } = await issuer.get('/key-chain/{id}', { path: { id: 'signing' } });
      const trustAnchors = join(folder, 'anchors.pem');
      writeFileSync(trustAnchors, rootCertificate ?? '');
      settings = { ...(await tenant('shop')), TRUST_ANCHORS: trustAnchors };
    });

    /** A wallet with a PID with this claim. */
    const walletWithPid = async (isAdult: boolean) => {
      const wallet = new Openid4vcWallet();
      const { uri } = await issuer.post('/issuer/offer', {
        body: {
          response_type: 'uri',
          flow: 'pre_authorized_code',
          credentialConfigurationIds: ['pid'],
          credentialClaims: { pid: { type: 'inline', claims: { given_name: 'Ada', age_equal_or_over: { 18: isAdult } } } },
        },
      });
      const [credential] = await wallet.accept(uri);
      if (credential === undefined) throw new Error('no credential came');
      return { wallet, credential };
    };
    /** Orders in the shop as a browser does. */
    const order = async () => {
      const orderResponse = await fetch(`${shop.url}/orders`, { method: 'POST', redirect: 'manual' });
      expect(orderResponse.status).to.equal(303);
      const [cookie = ''] = (orderResponse.headers.get('set-cookie') ?? '').split(';');
      const html = await (await fetch(`${shop.url}/order`, { headers: { Cookie: cookie } })).text();
      expect(html).to.include('<svg');
      const [, uri = ''] = /href="([^"]+)"/.exec(html) ?? [];
      return { cookie, uri: uri.replaceAll('&amp;', '&') };
    };
    const readOrderState = async (cookie: string): Promise<string> => {
      const answer = await fetch(`${shop.url}/order/state`, { headers: { Cookie: cookie } });
      return ((await answer.json()) as { state: string }).state;
    };
    const waitForOrder = async (cookie: string) => {
      for (let tries = 0; tries < 100; tries++) {
        const state = await readOrderState(cookie);
        if (!['waiting', 'scanned'].includes(state)) return state;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      throw new Error('the order does not end');
    };
    const present = async (uri: string, isAdult: boolean) => {
      const { wallet, credential } = await walletWithPid(isAdult);
      const request = await wallet.readRequest(uri);
      expect(request.asked).to.deep.equal({ age: ['age_equal_or_over.18'] });
      await wallet.present(request, credential);
    };

    it('sells to adults, notifies only the ordering browser, and restarts', async () => {
      for (const _start of ['the first time', 'again']) {
        shop = await start('shop/shop.mjs', settings);
        const [{ cookie, uri }, otherOrder] = [await order(), await order()];
        expect(await readOrderState(cookie)).to.equal('waiting');
        await present(uri, true);
        expect(await waitForOrder(cookie), shop.program.output()).to.equal('approved');
        expect(await readOrderState(otherOrder.cookie)).to.equal('waiting');
        expect(await readOrderState('order=guessed')).to.equal('unknown');
        await stopPrograms();
      }
    });

    it('rejects minors, and forged webhook calls', async () => {
      shop = await start('shop/shop.mjs', settings);
      const { cookie, uri } = await order();
      const forgedCall = await fetch(`${shop.url}/webhooks/vidimus`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ session: 's', credentials: [] }),
      });
      expect(forgedCall.status).to.equal(401);
      await present(uri, false);
      expect(await waitForOrder(cookie)).to.equal('refused');
    });

    it('rejects orders from another site, and by https orders that another host stored in the browser', async () => {
      shop = await start('shop/shop.mjs', settings);
      const headers = { 'Sec-Fetch-Site': 'cross-site' };
      const foreign = await fetch(`${shop.url}/orders`, { method: 'POST', redirect: 'manual', headers });
      expect([foreign.status, foreign.headers.get('set-cookie')]).to.deep.equal([403, null]);
      await stopPrograms();
      shop = await start('shop/shop.mjs', { ...settings, SHOP_URL: 'https://shop.example' });
      const orderResponse = await fetch(`${shop.url}/orders`, { method: 'POST', redirect: 'manual' });
      const [, id = ''] =
        /^__Host-order=([\w-]+); Path=\/; HttpOnly; Secure; SameSite=Lax$/.exec(orderResponse.headers.get('set-cookie') ?? '') ?? [];
      expect(await readOrderState(`__Host-order=${id}`)).to.equal('waiting');
      expect(await readOrderState(`order=${id}; x__Host-order=${id}`)).to.equal('unknown');
    });
  });

  it('university: issues by a signed webhook, defers unsigned diplomas, and revokes', async () => {
    const settings = await tenant('university');
    const { url } = await start('university/university.mjs', settings);
    const staff = (path: string) => fetch(`${url}/staff/students/${path}`, { method: 'POST' });
    const offer = async (number: string) => {
      const answer = await staff(`${number}/offer`);
      expect(answer.status).to.equal(201);
      return (await answer.json()) as { uri: string; code: string };
    };

    const ready = await offer('4711');
    const wallet = new Openid4vcWallet(unnotified);
    expect(await wallet.accept(ready.uri, { txCode: 'wrong' }).catch(() => 'refused')).to.equal('refused');
    const [diploma] = await wallet.accept(ready.uri, { txCode: ready.code });
    expect(readableClaims(diploma?.text ?? '')).to.deep.equal({
      name: 'Ada Lovelace',
      degree: 'MSc Mathematics',
      awarded_by: 'University of Acme',
    });

    const earlyOffer = await offer('4712');
    expect(await wallet.accept(earlyOffer.uri, { txCode: earlyOffer.code }), 'not signed yet').to.deep.equal([]);
    expect((await staff('4712/sign')).status).to.equal(204);
    const [deferredCredential] = await wallet.fetchPromised();
    expect(readableClaims(deferredCredential?.text ?? '')['name']).to.equal('Alan Turing');

    const client = createClient(settings);
    await client.post('/verifier/config', {
      body: {
        id: 'graduates',
        dcql_query: { credentials: [{ id: 'diploma', format: 'dc+sd-jwt', meta: { vct_values: ['urn:acme:diploma:1'] } }] },
      },
    });
    const outcome = async () => {
      const requestResponse = await client.post('/verifier/offer', { body: { response_type: 'uri', requestId: 'graduates' } });
      if (diploma === undefined) throw new Error('no diploma');
      await wallet.present(await wallet.readRequest(requestResponse.uri), diploma).catch(() => undefined);
      return (await client.waitForSession(requestResponse.session, { timeoutMs: 10_000 })).status;
    };
    expect(await outcome()).to.equal('completed');
    const headers = { 'Sec-Fetch-Site': 'cross-site' };
    const foreign = await fetch(`${url}/staff/students/4711/revoke`, { method: 'POST', headers });
    expect(foreign.status, 'a form of another site').to.equal(403);
    expect(await outcome()).to.equal('completed');
    expect((await staff('4711/revoke')).status).to.equal(204);
    expect(await outcome()).to.equal('failed');
    expect((await staff('4713/offer')).status).to.equal(404);
    const forgedCall = await fetch(`${url}/webhooks/claims`, { method: 'POST', body: '{}' });
    expect(forgedCall.status).to.equal(401);
  });
});
