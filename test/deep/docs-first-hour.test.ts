import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { expect } from 'chai';
import { freePort } from '../demo/process.ts';
import { type Block, framesOf, Terminal } from '../support/docs-walk.ts';
import { endPrograms, startProgram } from '../support/program.ts';
import { Openid4vcWallet } from '../wallets/openid4vc/wallet.ts';

const PAGE = 'first-hour.md';
const text = readFileSync(new URL(`../../docs/${PAGE}`, import.meta.url), 'utf8');
const frames = framesOf(text);
/** The programs of the page go on while a wallet does its part. */
const RUNS = /^npx node --env-file=(\w+\.env) (\w+\.mjs)$/;

describe('the page about the first hour', () => {
  let terminal: Terminal;
  let address: string;
  const wallet = new Openid4vcWallet();

  before(async () => {
    const [port, webhook] = [await freePort(createServer), await freePort(createServer)];
    address = `http://localhost:${port}`;
    terminal = new Terminal({
      instead: { '127.0.0.1:8080': `127.0.0.1:${webhook}`, '8080,': `${webhook},` },
      environment: { VIDIMUS_URL: address, PUBLIC_URL: address },
    });
  });
  afterEach(endPrograms);
  after(() => terminal?.close());

  /** @returns all that a program of the page said, once a wallet has taken the link that it printed. */
  const run = async (block: Block, use: (uri: string) => Promise<unknown>) => {
    const [, file = '', program = ''] = RUNS.exec(block.text) ?? [];
    const started = startProgram(process.execPath, [`--env-file=${file}`, program], {
      cwd: terminal.folder,
      environment: { PATH: process.env['PATH'], VIDIMUS_URL: address },
    });
    for (let tries = 0; tries < 200 && !started.output().includes('\nactive\n'); tries++) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    await use(started.output().split('\n')[0] ?? '');
    expect(await started.ended, started.output()).to.equal(0);
    return started.output();
  };

  it('can be followed up to a question that is answered', async () => {
    const outputs: string[] = [];
    for (const frame of frames) {
      if (frame.language === 'js') terminal.write(frame.name, frame.text);
      if (frame.language !== 'sh') continue;
      if (!RUNS.test(frame.text)) {
        const { code, stderr } = await terminal.type(frame.text, address);
        expect(code, stderr).to.equal(0);
      } else if (outputs.length === 0) {
        outputs.push(await run(frame, (uri) => wallet.accept(uri)));
      } else {
        const answer = async (uri: string) => {
          const [card] = wallet.credentials;
          if (card === undefined) throw new Error('the wallet has no card');
          return wallet.present(await wallet.readRequest(uri), card);
        };
        outputs.push(await run(frame, answer));
      }
    }
    expect(outputs).to.have.length(2);
    expect(outputs[0]).to.match(/\nactive\n(fetched\n)?completed\n$/);
    expect(outputs[1]).to.match(/\ncompleted\n\{ course: 'Logic' \}\n$/);
  });

  it('shows the phone what is there', async () => {
    for (const [, path = ''] of text.matchAll(/`<PUBLIC_URL>(\/[^`]+)`/g)) {
      const answer = await fetch(address + path);
      expect(answer.status, path).to.equal(200);
      const body = (await answer.json()) as Record<string, unknown>;
      if (path !== '/health') expect(String(body['credential_issuer'])).to.match(new RegExp(`^${address}`));
      else expect(body['status']).to.equal('ok');
    }
  });
});
