import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliDecompressSync } from 'node:zlib';
import { answers, type Running, startProgram } from './program.ts';
import { type Callable, type CallOptions, ROOT } from './test-service.ts';
import { callsTo } from './worker-service.ts';

const archiveOf = (state: Earlier) =>
  new URL(`../upgrade/${state === 'first' ? 'first-release' : state}.tar.br`, import.meta.url);
const PACKAGES = fileURLToPath(new URL('../../node_modules', import.meta.url));
const PRESENT = fileURLToPath(new URL('../../', import.meta.url));

/** Release 0.1.0, and the state before 0.2.0, which has no number. */
export type Earlier = 'first' | '2026-11-28';
export type Release = Earlier | 'present';

/** Releases as programs: earlier ones as they were, on the packages of this one. */
export class Releases {
  readonly folder = mkdtempSync(join(tmpdir(), 'vidimus-releases-'));
  readonly #environment: Readonly<Record<string, string>>;
  readonly #publicUrl: string;

  /** @param publicUrl of both, wherever they listen. */
  constructor(publicUrl: string, environment: Readonly<Record<string, string>>) {
    this.#publicUrl = publicUrl;
    this.#environment = environment;
  }

  environment(port: number): Record<string, string> {
    return {
      PORT: String(port),
      HOST: '127.0.0.1',
      PUBLIC_URL: this.#publicUrl,
      DATA_FOLDER: this.folder,
      LOG_LEVEL: 'warn',
      DRAIN_SECONDS: '0',
      OUTBOUND_ALLOW: '127.0.0.1/32',
      AUTH_CLIENT_ID: ROOT.clientId,
      AUTH_CLIENT_SECRET: ROOT.secret,
      MASTER_SECRET: 'a master secret that two releases have',
      ...this.#environment,
    };
  }

  #unpacked(state: Earlier): string {
    const folder = join(this.folder, state);
    if (existsSync(folder)) return folder;
    mkdirSync(folder);
    execFileSync('tar', ['x', '-C', folder], { input: brotliDecompressSync(readFileSync(archiveOf(state))) });
    symlinkSync(PACKAGES, join(folder, 'node_modules'));
    return folder;
  }

  launch(release: Release, port: number): Running {
    const root = release === 'present' ? PRESENT : this.#unpacked(release);
    const environment = { PATH: process.env['PATH'], ...this.environment(port) };
    return startProgram(process.execPath, [join(root, 'bootstrap/main.ts')], {
      environment,
      cwd: this.folder,
    });
  }

  async start(release: Release, port: number): Promise<Running> {
    const program = this.launch(release, port);
    await answers(program, `http://127.0.0.1:${port}/health`);
    return program;
  }

  /** What is called by the public address is sent to one process. */
  callsTo(port: number): Callable {
    const { address, ...rest } = callsTo(`http://127.0.0.1:${port}`);
    const call = (method: string, path: string, options?: CallOptions) =>
      rest.call(method, path.replace(this.#publicUrl, address), options);
    const token = async (clientId: string, secret: string) => {
      const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: secret };
      const answer = await call('POST', '/oauth2/token', { form });
      if (answer.status !== 200) throw new Error(`token of ${clientId}: ${answer.status} ${answer.text}`);
      return String(answer.body.access_token);
    };
    return { address: this.#publicUrl, call, token, rootToken: () => token(ROOT.clientId, ROOT.secret) };
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export async function stop({ child, ended }: Running): Promise<void> {
  child.kill('SIGTERM');
  await ended;
}
