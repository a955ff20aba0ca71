import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { freePort } from '../demo/process.ts';
import { type NamedCodeBlock, namedCodeBlocks, Terminal } from '../support/docs-pages.ts';
import { hasPrograms, startProgram, stopPrograms, waitForAnswer } from '../support/programs.ts';
import { certify, pem } from '../support/test-certificates.ts';

const BACKEND = 'backend.mjs';
const SHOP = 'shop.mjs';
const RUN_SHOP = `npx node ${SHOP}`;

/** The guides share one shell and one service, in this order. */
describe('the guides for integrators', () => {
  let terminal: Terminal;
  let address: string;
  let webhookPort: number;
  let shopPort: number;
  let functions = '';

  before(async function () {
    if (!hasPrograms('the guides for integrators', ['curl', 'jq'])) return this.skip();
    const ports = [await freePort(createServer), await freePort(createServer), await freePort(createServer)];
    const [port = 0] = ports;
    [, webhookPort = 0, shopPort = 0] = ports;
    address = `http://localhost:${port}`;
    terminal = new Terminal({
      instead: {
        'http://localhost:3000': address,
        '127.0.0.1:8080': `127.0.0.1:${webhookPort}`,
        '127.0.0.1:8081': `127.0.0.1:${shopPort}`,
      },
      environment: { VIDIMUS_URL: address, PUBLIC_URL: address },
    });
  });
  after(async () => {
    await stopPrograms();
    await terminal?.close();
  });

  const portOf = (name: string) => String(name === SHOP ? shopPort : webhookPort);
  const framesOfGuide = (guide: string): readonly NamedCodeBlock[] =>
    namedCodeBlocks(readFileSync(new URL(`../../docs/${guide}`, import.meta.url), 'utf8'));
  const type = async (text: string): Promise<string> => {
    const { code, stdout, stderr } = await terminal.type(`${functions}\n${text}`, address);
    expect(code, `${text}\n${stdout}${stderr}`).to.equal(0);
    return stdout;
  };
  /** @returns the output of each shell block of a guide. */
  const typeCommands = async (guide: string): Promise<readonly string[]> => {
    const outputs: string[] = [];
    for (const frame of framesOfGuide(guide)) {
      if (frame.language !== 'sh') continue;
      if (frame.text.includes('call() {')) functions = frame.text;
      if (frame.text === RUN_SHOP) await start(guide, SHOP);
      else outputs.push(await type(frame.text));
      // The backend starts once its secret is known.
      if (frame.text.includes('export WEBHOOK_SECRET')) await start(guide, BACKEND);
    }
    return outputs;
  };
  async function start(guide: string, name: string): Promise<void> {
    terminal.write(
      name,
      framesOfGuide(guide)
        .find((frame) => frame.name === name)
        ?.text.replaceAll(/808[01](?=,)/g, portOf(name)) ?? '',
    );
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a parameter of the shell
    const secrets = { WEBHOOK_SECRET: await type('printf %s "$WEBHOOK_SECRET"'), SHOP_SECRET: await type('printf %s "${SHOP_SECRET:-}"') };
    const environment = { PATH: process.env['PATH'], ...secrets, VIDIMUS_URL: address };
    const program = startProgram(process.execPath, [name], { cwd: terminal.folder, environment });
    // The backend rejects a call without signature, the shop a visitor without cookie.
    await waitForAnswer(program, `http://127.0.0.1:${portOf(name)}/welcome`, { status: name === SHOP ? 403 : 401 });
  }

  it('issue-from-your-backend.md issues a credential with claims of the backend', async () => {
    const outputs = await typeCommands('guides/issue-from-your-backend.md');
    expect(outputs.at(-1))
      .to.include('Ada')
      .and.to.match(/\ncompleted\n$/);
    expect(outputs.join('\n'), 'warnings').to.include('[]');
  });

  it('verify-in-a-web-shop.md verifies it on another device and on the same device', async () => {
    await typeCommands('guides/verify-in-a-web-shop.md');
    const shop = `http://127.0.0.1:${shopPort}`;
    const visit = async () => {
      const answer = await fetch(shop);
      const text = (await answer.text()).replaceAll('&amp;', '&');
      const cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? '';
      const [, uri = ''] = /href="([^"]+)"/.exec(text) ?? [];
      const [, crossDeviceUri = ''] = /<code>([^<]+)</.exec(text) ?? [];
      return { cookie, uri, crossDeviceUri };
    };
    const readShopPage = async (path: string, cookie: string) => (await fetch(`${shop}${path}`, { headers: { cookie } })).text();

    const firstVisit = await visit();
    expect(await readShopPage('/name', firstVisit.cookie)).to.equal('');
    await type(`npm run --silent wallet -- '${firstVisit.crossDeviceUri}' --yes`);
    for (let tries = 0; tries < 100 && (await readShopPage('/name', firstVisit.cookie)) === ''; tries++)
      await new Promise((resolve) => setTimeout(resolve, 50));
    expect(await readShopPage('/welcome', firstVisit.cookie)).to.equal('Welcome, Ada');

    const secondVisit = await visit();
    const output = await type(`npm run --silent wallet -- '${secondVisit.uri}' --yes`);
    const [, path = ''] = /The browser is redirected to http:\/\/127\.0\.0\.1:\d+(\/done\S+)/.exec(output) ?? [];
    expect(await readShopPage(path, firstVisit.cookie), 'in another browser').to.include('Not verified');
    expect(await readShopPage(path, secondVisit.cookie)).to.equal('Welcome, Ada');
  });

  it('deferred-and-batch-issuance.md allows batches and issues a deferred credential', async () => {
    const [batchSize, ...deferred] = await typeCommands('guides/deferred-and-batch-issuance.md');
    expect(batchSize).to.equal('10\n');
    expect(deferred.at(-1)).to.include('Diploma').and.to.include('MSc');
  });

  it('revoke.md suspends, restores and revokes', async () => {
    const outputs = await typeCommands('guides/revoke.md');
    expect(outputs[2], 'suspended').to.match(/"status":2/);
    expect(JSON.parse(outputs.at(-1) ?? '').revoked).to.be.greaterThan(0);
    const text = `call POST /session/revoke "{\\"sessionId\\":\\"$SESSION\\",\\"status\\":0}"`;
    const repeatedOutput = await terminal.type(`${functions}\n${text}`, address);
    expect(repeatedOutput.stdout, 'revoked is final').to.include('409');
  });

  it('own-identity-provider.md configures the login and creates an offer', async () => {
    const outputs = await typeCommands('guides/own-identity-provider.md');
    expect(outputs.at(-1)).to.match(/^openid-credential-offer:/);
  });

  it('haip-and-eu.md binds the tenant to HAIP', async () => {
    const ca = await certify({ name: 'Wallet providers', ca: true });
    writeFileSync(join(terminal.folder, 'wallet-providers.pem'), pem(ca));
    const outputs = await typeCommands('guides/haip-and-eu.md');
    expect(outputs[1]).to.match(/^"haip"\n/);
    expect(outputs).to.have.length(4);
  });
});
