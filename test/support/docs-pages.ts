import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { minimalEnvironment } from './compile-cache.ts';
import { WAIT_TIMEOUT_MS } from './patience.ts';
import type { ProcessResult } from './programs.ts';

/** A request that a page shows: the line above the JSON, and the JSON. */
export type PageRequest = { readonly method: string; readonly path: string; readonly text: string };
export type DocsPage = { readonly text: string; readonly requests: readonly PageRequest[] };

const CERTIFICATE = /-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\\n/g;

/**
 * Reads a page of `docs/` on which every JSON is the body of a request.
 * @param minRequests minimum number of its requests.
 */
export function readPage(name: string, minRequests = 3): DocsPage {
  const text = readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8');
  const matches = [...text.matchAll(/^`(POST|PATCH|PUT) (\/\S+)`\n```json\n([\s\S]*?)\n```$/gm)];
  const requests = matches.map(([, method = '', path = '', body = '']) => ({ method, path, text: body }));
  expect(requests, `${name}: requests among all JSON`)
    .to.have.length([...text.matchAll(/^```json$/gm)].length)
    .and.length.at.least(minRequests);
  return { text, requests };
}

/** The code blocks of one language, in their order. */
export function codeBlocks({ text }: DocsPage, language: string): readonly string[] {
  return [...text.matchAll(/^```(\S+)\n([\s\S]*?)\n```$/gm)].flatMap(([, blockLanguage, block = '']) =>
    blockLanguage === language ? [block] : [],
  );
}

/** @param pem replaces the placeholder certificates of the page. */
export function withCertificate(text: string, pem: string): string {
  return text.replace(CERTIFICATE, JSON.stringify(pem).slice(1, -1));
}

export function expectPropertiesNamed({ text }: DocsPage, propertyNames: readonly string[]): void {
  for (const property of propertyNames) expect(text, property).to.match(new RegExp(`["\`]${property}["\`]`));
}

/** Runs a backend of a page as a separate process; it listens on the port when this resolves. */
export async function startScript(code: string, port: number, environment: Readonly<Record<string, string>> = {}): Promise<ChildProcess> {
  const started = spawn(process.execPath, ['--input-type=module'], {
    stdio: ['pipe', 'ignore', 'inherit'],
    env: { ...process.env, ...environment },
  });
  started.stdin?.end(code.replace('8080', String(port)));
  while (!(await isListening(port))) {
    if (started.exitCode !== null) throw new Error('a script of the page does not run');
    await delay(20);
  }
  return started;
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const STOP_MS = 10_000;
/** Entries that the service writes, or that do not belong to the project. */
const EXCLUDED = /^(data|dist|coverage|\.git|.*\.log)$/;

/** A code block with the name on the line above it. */
export type NamedCodeBlock = { readonly section: string; readonly name: string; readonly language: string; readonly text: string };

/** All named code blocks of a page of `docs/`, in their order. */
export function namedCodeBlocks(page: string): readonly NamedCodeBlock[] {
  const blocks: NamedCodeBlock[] = [];
  let section = '';
  const matches = page.matchAll(/^#+ (.+)$|^(?:`([^`\n]+)`\n)?```(\w+)\n([\s\S]*?)\n```$/gm);
  for (const [, heading, name = '', language = '', text = ''] of matches) {
    // A line of a shell script may look like a heading, so code blocks are matched as a whole.
    if (heading !== undefined) section = heading;
    else blocks.push({ section, name, language, text });
  }
  return blocks;
}

type TerminalSettings = {
  /** Texts of the page and their replacements in a test. */
  readonly instead: Readonly<Record<string, string>>;
  /** Additional environment variables of the shell. */
  readonly environment: Readonly<Record<string, string>>;
};

/**
 * A shell that runs the commands of a page in a folder with the files of the project. `npm start` at the end of a block
 * starts or restarts the service.
 */
export class Terminal {
  readonly folder = mkdtempSync(join(tmpdir(), 'vidimus-docs-'));
  /** The output of the service since its start. */
  log = '';
  readonly #instead: TerminalSettings['instead'];
  readonly #kill = () => this.#endAll();
  #environment: Readonly<Record<string, string | undefined>>;
  #service: ChildProcess | undefined;

  constructor({ instead, environment }: TerminalSettings) {
    this.#instead = instead;
    for (const name of readdirSync(ROOT).filter((entry) => !EXCLUDED.test(entry))) {
      symlinkSync(join(ROOT, name), join(this.folder, name));
    }
    const home = { HOME: this.folder, npm_config_update_notifier: 'false', DRAIN_SECONDS: '0' };
    this.#environment = { ...minimalEnvironment(), ...home, ...environment };
    process.once('exit', this.#kill);
  }

  /** Replaces the addresses of the page by those of the test. */
  adaptToTest(text: string): string {
    return Object.entries(this.#instead).reduce((result, [placeholder, replacement]) => result.replaceAll(placeholder, replacement), text);
  }

  write(name: string, text: string): void {
    const file = join(this.folder, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, this.adaptToTest(text));
  }

  /** @param address address of the service; if the commands start it, it is ready when this resolves. */
  async type(text: string, address: string): Promise<ProcessResult> {
    const lines = this.adaptToTest(text).split('\n');
    const starts = lines.at(-1) === 'npm start';
    const commandOutput = await this.#run((starts ? lines.slice(0, -1) : lines).join('\n'));
    if (starts && commandOutput.code === 0) {
      await this.stop();
      await this.#start(address);
    }
    return commandOutput;
  }

  /** Stops the service as a restart does. */
  async stop(): Promise<void> {
    const service = this.#service;
    if (service === undefined) return;
    const exited = new Promise((resolve) => service.once('exit', resolve));
    if (service.exitCode === null) {
      service.kill('SIGTERM');
      const timer = setTimeout(() => this.#endAll(), STOP_MS);
      await exited;
      clearTimeout(timer);
    }
    this.#service = undefined;
  }

  async close(): Promise<void> {
    await this.stop();
    process.off('exit', this.#kill);
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Exported variables are kept for the next commands. */
  #run(script: string): Promise<ProcessResult> {
    const environmentFile = join(this.folder, '.environment');
    const commands = `set -e\n${script}\nenv -0 > '${environmentFile}'`;
    return new Promise((resolve) => {
      const options = { cwd: this.folder, env: this.#environment };
      execFile('sh', ['-c', commands], options, (error, stdout, stderr) => {
        const code = error === null ? 0 : Number(error.code);
        if (code === 0) this.#environment = readEnvironment(environmentFile);
        resolve({ code, stdout, stderr });
      });
    });
  }

  async #start(address: string): Promise<void> {
    this.log = '';
    const service = spawn('npm', ['start'], {
      cwd: this.folder,
      env: { ...this.#environment, HOST: '127.0.0.1', PORT: new URL(address).port },
      stdio: ['ignore', 'pipe', 'pipe'],
      // A separate process group, so that its child processes can be stopped, too.
      detached: true,
    });
    this.#service = service;
    for (const stream of [service.stdout, service.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        this.log += chunk.toString();
      });
    }
    const deadline = performance.now() + WAIT_TIMEOUT_MS;
    while (!(await answers(address))) {
      if (service.exitCode !== null || performance.now() > deadline) {
        this.#endAll();
        throw new Error(`the service did not start:\n${this.log}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
  }

  #endAll(): void {
    try {
      if (this.#service?.pid !== undefined) process.kill(-this.#service.pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
  }
}

function readEnvironment(file: string): Readonly<Record<string, string>> {
  const entries = readFileSync(file, 'utf8').split('\0').filter(Boolean);
  return Object.fromEntries(
    entries.map((entry) => {
      const end = entry.indexOf('=');
      return [entry.slice(0, end), entry.slice(end + 1)];
    }),
  );
}

async function answers(address: string): Promise<boolean> {
  try {
    return (await fetch(`${address}/health`)).ok;
  } catch {
    return false;
  }
}
