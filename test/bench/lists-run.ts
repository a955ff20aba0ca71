import { fork } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeJwt } from '../support/raw-wallet.ts';
import { type CertifiedKey, certify, pem } from '../support/test-certificates.ts';
import { trustList } from '../support/trust-list.ts';
import { signXml, xmlList } from '../support/xml-list.ts';
import { HttpClient, json, text } from './http-client.ts';
import { memoryMegabytes } from './processor-time.ts';
import { freePort, ROOT_CLIENT, ServiceProcess, type Variant } from './service-process.ts';
import { accessToken } from './tenant-setup.ts';

/** The result of `--lists`: forty lists at once on one service, and the delay of other requests. */
export type ListsRun = {
  readonly name: string;
  readonly lists: number;
  /** Lists that were read in the end, and the seconds until then. */
  readonly read: number;
  readonly seconds: number;
  /** Responses of `/health/live`, milliseconds. */
  readonly longestMs: number;
  readonly p99Ms: number;
  /** Longest turn of the main thread in processor time, milliseconds. */
  readonly longestTurnMs: number;
  readonly idleLongestMs: number;
  readonly pollerDelayMs: number;
  readonly failures: number;
  /** Resident megabytes: before, and at most above that. */
  readonly idleMegabytes: number;
  readonly addedMegabytes: number;
};

const COUNT = 20;
const XML_BYTES = 250 * 1024;
const JSON_BYTES = 1.7 * 1024 * 1024;
const CERTIFICATES = 1_000;
const MAX_SECONDS = 120;
const IDLE_MS = 3_000;
const TRIES = 30;
const XML_SERVICE = 'http://uri.etsi.org/TrstSvc/Svctype/EAA/Q';
const PROBE = new URL('turn-probe.ts', import.meta.url).href;
const POLLER = fileURLToPath(new URL('health-poller.ts', import.meta.url));
/** Limits of the benchmark. */
export const GAP_LIMIT_MS = 50;
export const MEMORY_LIMIT_MB = 128;

/** @param tree the folder of a built service; this one unless given. */
export async function runLists(name: string, profileFolder?: string, variant: Variant = {}): Promise<ListsRun> {
  const lists = await serveLists();
  const dataFolder = mkdtempSync(join(tmpdir(), 'vidimus-bench-'));
  const turnFile = join(dataFolder, 'turns');
  writeFileSync(turnFile, '');
  const nodeOptions = [...(variant.nodeOptions ?? []), `--import=${PROBE}`];
  const service = new ServiceProcess(await freePort(), {
    ...{ profileFolder, memory: false, processes: 1, kms: 'local', dataFolder },
    variant: { ...variant, nodeOptions },
    databaseUrl: `sqlite:${join(dataFolder, 'bench.db')}`,
    environment: { TURN_FILE: turnFile },
  });
  try {
    await service.start();
    return await measure(name, service, lists, turnFile);
  } finally {
    await service.stop();
    lists.close();
    rmSync(dataFolder, { recursive: true, force: true });
  }
}

type Lists = Awaited<ReturnType<typeof serveLists>>;

/** Twenty lists of either format, each with its own certificates, on a server of this process. */
async function serveLists() {
  const operator = await certify({ name: 'Operator' });
  const certificates: string[] = [];
  for (let index = 0; index < CERTIFICATES; index++) certificates.push((await certify({ name: `Issuer ${index}`, ca: true })).certificate);
  const bodies = new Map<string, Buffer>();
  for (let index = 0; index < COUNT; index++) {
    bodies.set(`/xml/${index}`, makeXmlList(certificates, operator));
    bodies.set(`/json/${index}`, makeJsonList(certificates, operator));
  }
  const server = createServer((request, response) => {
    response.end(bodies.get(request.url ?? ''));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const uris = [...bodies.keys()].map((path) => `http://127.0.0.1:${port}${path}`);
  return { operator, uris, close: () => server.close() };
}

function makeXmlList(certificates: readonly string[], operator: CertifiedKey): Buffer {
  const toService = (certificate: string) => ({ type: XML_SERVICE, certificates: [certificate] });
  const [firstCertificate = ''] = certificates;
  const size = xmlList({ services: [toService(firstCertificate)] }).length - xmlList().length;
  const services = certificates.slice(0, Math.floor(XML_BYTES / size)).map(toService);
  return Buffer.from(signXml(xmlList({ issuedAt: '2020-01-01T00:00:00Z', services }), operator));
}

function makeJsonList(certificates: readonly string[], operator: CertifiedKey): Buffer {
  const now = Math.floor(Date.now() / 1000);
  const listWith = (count: number) => Buffer.from(makeJsonText(certificates, count, operator, now));
  const each = listWith(101).length - listWith(100).length;
  return listWith(Math.floor(JSON_BYTES / each));
}

function makeJsonText(certificates: readonly string[], count: number, signer: CertifiedKey, now: number): string {
  const services = Array.from({ length: count }, (_, index) => ({
    type: 'EAA/Issuance',
    certificates: [certificates[index % certificates.length] ?? ''],
  }));
  return trustList({ entities: [{ name: 'Issuers', services }], signer }, now);
}

async function measure(name: string, service: ServiceProcess, lists: Lists, turnFile: string): Promise<ListsRun> {
  const http = new HttpClient(service.origin, 8);
  const root = await accessToken(http, ROOT_CLIENT.id, ROOT_CLIENT.secret);
  const tenant = json(
    'POST /tenant',
    await http.postJson('/tenant', { id: 'lists', name: 'Lists', roles: ['presentation:manage'] }, { authorization: `Bearer ${root}` }),
    201,
  );
  const [client = {}] = (tenant['clients'] ?? []) as Record<string, unknown>[];
  const token = await accessToken(http, text('client', client, 'clientId'), text('client', client, 'secret'));
  const authorization = { authorization: `Bearer ${token}` };
  const signerPems = [pem(lists.operator)];
  const idle = await polled(service, () => new Promise((resolve) => setTimeout(resolve, IDLE_MS)));
  const { pid } = service;
  const idleMegabytes = memoryMegabytes(pid, 'VmRSS');
  let peak = idleMegabytes;
  const memory = setInterval(() => {
    peak = Math.max(peak, memoryMegabytes(pid, 'VmRSS'));
  }, 5);
  memory.unref();
  const startTime = Date.now();
  let listsRead = 0;
  let seconds = 0;
  const polls = await polled(service, async () => {
    const startedAt = performance.now();
    // A configuration names twenty lists at most.
    const configure = async (id: string) => {
      const tenantLists = lists.uris.filter((uri) => uri.includes(`/${id}/`));
      const configuration = {
        id,
        dcql_query: { credentials: [{ id: 'c', format: 'dc+sd-jwt', meta: { vct_values: ['urn:c:1'] } }] },
        trustAnchors: tenantLists.map((trustList) => ({ trustList, signedBy: signerPems })),
      };
      json('POST /verifier/config', await http.postJson('/verifier/config', configuration, authorization), 201);
    };
    const presentation = await preparePresentation();
    const tryOne = (id: string) => http.postJson(`/verifier/config/${id}/try`, { presentation }, authorization);
    await Promise.all(['xml', 'json'].map(configure));
    for (let attempt = 0; attempt < TRIES && listsRead < lists.uris.length; attempt++) {
      await Promise.all(['xml', 'json'].map(tryOne));
      const stats = json('GET /cache/stats', await http.get('/cache/stats', authorization), 200);
      listsRead = Number((stats['trustListCache'] as { size?: number } | undefined)?.size ?? 0);
      seconds = (performance.now() - startedAt) / 1000;
      if (seconds > MAX_SECONDS) break;
      if (listsRead < lists.uris.length) await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
  }).finally(() => clearInterval(memory));
  http.close();
  const sorted = polls.milliseconds.toSorted((first, second) => first - second);
  return {
    ...{ name, lists: lists.uris.length, read: listsRead, seconds, failures: polls.failures },
    longestMs: sorted.at(-1) ?? 0,
    longestTurnMs: longestTurn(turnFile, startTime),
    p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
    idleLongestMs: Math.max(...idle.milliseconds),
    pollerDelayMs: polls.ownDelay,
    idleMegabytes,
    addedMegabytes: peak - idleMegabytes,
  };
}

/** By an issuer on none of the lists, so that all lists are read. */
async function preparePresentation(): Promise<string> {
  const issuer = await certify({ name: 'Issuer' });
  const header = { alg: 'ES256', typ: 'dc+sd-jwt', x5c: [issuer.certificate] };
  const iat = Math.floor(Date.now() / 1000);
  return `${makeJwt(issuer, header, { vct: 'urn:c:1', iat, exp: iat + 3600 })}~`;
}

/** Shorter turns than the probe reports count as none. */
function longestTurn(file: string, startTime: number): number {
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean);
  const turns = lines.map((line) => line.split(' ').map(Number));
  return Math.max(0, ...turns.flatMap(([turnTime = 0, turnMs = 0]) => (turnTime >= startTime ? [turnMs] : [])));
}

type Polls = { readonly milliseconds: readonly number[]; readonly failures: number; readonly ownDelay: number };

async function polled({ origin }: ServiceProcess, work: () => Promise<unknown>): Promise<Polls> {
  const poller = fork(POLLER, [`${origin}/health/live`], { execArgv: [] });
  await new Promise((resolve) => poller.once('spawn', resolve));
  const pollResult = new Promise<Polls>((resolve, reject) => {
    poller.once('message', (polls) => resolve(polls as Polls));
    poller.once('error', reject);
  });
  try {
    await work();
  } finally {
    poller.send('end');
  }
  return pollResult;
}

export function describeLists(run: ListsRun): string {
  const roundMs = (value: number) => value.toFixed(0);
  return [
    `\n${run.name}: ${run.read} of ${run.lists} lists read in ${run.seconds.toFixed(1)} s`,
    `/health/live: main thread at most ${roundMs(run.longestTurnMs)} ms, response longest ${roundMs(run.longestMs)} ms, p99 ${roundMs(run.p99Ms)} ms, ${run.failures} failures` +
      ` (idle: longest ${roundMs(run.idleLongestMs)} ms; the poller itself was held up for ${roundMs(run.pollerDelayMs)} ms)`,
    `memory: ${roundMs(run.idleMegabytes)} MB idle, at most ${roundMs(run.addedMegabytes)} MB more`,
  ].join('\n');
}
