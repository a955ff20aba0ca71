import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { inflateSync } from 'node:zlib';
import { expect } from 'chai';
import { freePort } from '../demo/process.ts';
import { minimalEnvironment } from './compile-cache.ts';
import type { DatabaseKind, TestDatabase } from './databases.ts';
import { WAIT_TIMEOUT_MS } from './patience.ts';
import { createResource, credentialBody, offerBody } from './populated.ts';
import { RawWallet } from './raw-wallet.ts';
import { startedProgram } from './start-options.ts';
import { type Answer, type CallOptions, createTenant, dataFolderOf, ROOT, startTestService, type TestService } from './test-service.ts';

export type SecondProcess = { readonly address: string; stop(): Promise<void> };

/** Starts a second process of the service with the same database, secrets and public address. */
export async function startSecondProcess(environment: Readonly<Record<string, string>>): Promise<SecondProcess> {
  const port = await freePort(createServer);
  const address = `http://localhost:${port}`;
  const child = spawn(process.execPath, [startedProgram()], {
    env: {
      DATA_FOLDER: dataFolderOf(environment['DATABASE_URL']),
      ...environment,
      ...minimalEnvironment(),
      PORT: String(port),
      DRAIN_SECONDS: '0',
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const output: string[] = [];
  child.stderr.on('data', (chunk: Buffer) => output.push(chunk.toString()));
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const deadline = performance.now() + WAIT_TIMEOUT_MS;
  while (!(await isHealthy(address))) {
    if (child.exitCode !== null || performance.now() > deadline) {
      child.kill('SIGKILL');
      throw new Error(`the second process did not start:\n${output.join('')}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return {
    address,
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

async function isHealthy(address: string): Promise<boolean> {
  try {
    return (await fetch(`${address}/health`)).ok;
  } catch {
    return false;
  }
}

/** The service with its calls distributed round-robin; the public address is that of the first process. */
export function distributeCalls(service: TestService, otherAddresses: readonly string[]): TestService {
  const addresses = [service.address, ...otherAddresses];
  let nextIndex = 0;
  return {
    ...service,
    call(method: string, path: string, options?: CallOptions) {
      const address = addresses[nextIndex++ % addresses.length] ?? service.address;
      const localPath = path.startsWith(service.address) ? path.slice(service.address.length) : path;
      return service.call(method, address + localPath, options);
    },
  };
}

const MASTER_SECRET = 'a master secret for the races 0123456789';

/** One database with one or two processes; calls are distributed round-robin. */
export type RaceContext = {
  readonly service: TestService;
  /** One per process. */
  readonly addresses: readonly string[];
  /** Administrator of the wallet's tenant, which issues `pid`. */
  readonly token: string;
  readonly wallet: RawWallet;
};

/** Sessions with an access token each, ready for their credential request. */
export function prepareSessions(
  { service, token, wallet }: Pick<RaceContext, 'service' | 'token' | 'wallet'>,
  count: number,
): Promise<readonly { readonly session: string; readonly accessToken: string }[]> {
  return callInParallel(count, async () => {
    const { uri, session } = await createResource(service, token, '/issuer/offer', offerBody('pid'));
    return { session, accessToken: await wallet.accessToken(uri) };
  });
}

export const callInParallel = <T>(count: number, call: (index: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => call(index)));

/** Counts responses by status and error code. */
export function countOutcomes(answers: readonly Answer[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status, body } of answers) {
    const name = [status, body?.error ?? body?.code].filter((part) => part !== undefined).join(' ');
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

/** Subject and tests of a race suite. */
export type RaceSuite = readonly [subject: string, define: (racing: () => RaceContext) => void];

/**
 * Defines the tests of all suites for a kind of database: one process on SQLite, two on PostgreSQL. All suites share the
 * processes, since starting them takes longer than most suites, and use separate tenants.
 */
export function describeRaces(kind: DatabaseKind, suites: readonly RaceSuite[]): void {
  const processes = kind.name === 'sqlite' ? 1 : 2;
  const suffix = `on ${kind.name} in ${processes === 1 ? 'one process' : 'two processes'}`;
  describe(`races ${suffix}`, () => {
    let database: TestDatabase | undefined;
    let firstService: TestService | undefined;
    let secondProcess: SecondProcess | undefined;
    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      const environment = { DATABASE_URL: database.url, MASTER_SECRET, OUTBOUND_ALLOW: '127.0.0.1/32' };
      firstService = await startTestService(environment);
      if (processes === 2) secondProcess = await startSecond(firstService.address, environment);
    });
    after(async () => {
      await secondProcess?.stop();
      await firstService?.close();
      await database?.drop();
    });
    for (const [index, [subject, define]] of suites.entries()) {
      describe(`${subject} ${suffix}`, () => {
        let racing: RaceContext;
        before(async () => {
          if (firstService === undefined) throw new Error('the service was not started');
          racing = await prepare(`acme-${index}`, firstService, secondProcess === undefined ? [] : [secondProcess.address]);
        });
        define(() => racing);
      });
    }
  });
}

function startSecond(publicUrl: string, environment: Readonly<Record<string, string>>) {
  return startSecondProcess({
    ...environment,
    HOST: '127.0.0.1',
    PUBLIC_URL: publicUrl,
    AUTH_CLIENT_ID: ROOT.clientId,
    AUTH_CLIENT_SECRET: ROOT.secret,
    LOG_LEVEL: 'silent',
  });
}

async function prepare(id: string, firstService: TestService, otherAddresses: readonly string[]): Promise<RaceContext> {
  const service = distributeCalls(firstService, otherAddresses);
  const { token } = await createTenant(service, id);
  await createResource(service, token, '/issuer/credentials', credentialBody('pid', 'signing'));
  return { service, addresses: [firstService.address, ...otherAddresses], token, wallet: new RawWallet(service, id) };
}

/** The status reference of a credential. */
export type StatusEntry = { readonly idx: number; readonly uri: string };

export const decodePayload = (jwt: string) => JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString());

export const statusEntryOf = (credential: string): StatusEntry => decodePayload(credential).status.status_list;

/** Reads the entries of a published list at one of the processes. */
export async function readStatusList({ service, addresses }: RaceContext, process: string, uri: string) {
  const address = uri.replace(addresses[0] ?? '', process);
  const answer = await fetch(address);
  expect(answer.status, address).to.equal(200);
  const { sub, status_list: list } = decodePayload(await answer.text());
  expect(sub).to.equal(uri);
  const { bits } = list;
  expect(uri.startsWith(service.address)).to.equal(true);
  const bytes = inflateSync(Buffer.from(list.lst, 'base64url'));
  const statusAt = (idx: number) => ((bytes[(idx * bits) >> 3] ?? 0) >> ((idx * bits) & 7)) & ((1 << bits) - 1);
  return { capacity: (bytes.length * 8) / bits, at: statusAt };
}
