import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AdminClient } from '../demo/admin-client.ts';
import { freePort, startProcess } from '../demo/process.ts';
import { Backend } from './backend.ts';
import { minimalEnvironment } from './compile-cache.ts';
import { WalletProvider } from './wallet-provider.ts';

const LAUNCHER = fileURLToPath(new URL('../../bootstrap/commands/vidimus.mjs', import.meta.url));

export type CaseResult = {
  readonly family: string;
  readonly name: string;
  readonly outcome: 'held' | 'open' | 'unclear' | 'skipped';
  readonly seen: string;
};
export type AttackRun = {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly families: readonly { readonly family: string; readonly state: 'run' | 'skipped' | 'not run'; readonly reason: string }[];
  readonly cases: readonly CaseResult[];
};

/** `npx vidimus attack` as a process of its own, with its report. */
export async function attack(args: readonly string[], environment: Readonly<Record<string, string>> = {}): Promise<AttackRun> {
  const folder = mkdtempSync(join(tmpdir(), 'vidimus-attack-'));
  const report = join(folder, 'report.json');
  try {
    const child = spawn(process.execPath, [LAUNCHER, 'attack', ...args, '--json', report], {
      env: { ...minimalEnvironment(), ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const output = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (text: string) => {
        output[name] += text;
      });
    }
    const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
    const { families = [] } = readReport(report);
    return { code, ...output, families, cases: families.flatMap(({ results }) => results) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

type Report = { readonly families?: readonly (AttackRun['families'][number] & { results: CaseResult[] })[] };

function readReport(file: string): Report {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return {};
  }
}

/** The lines of one outcome, for the message of a failed test. */
export const formatCases = (cases: readonly CaseResult[], outcome: CaseResult['outcome']): string[] =>
  cases.filter((caseResult) => caseResult.outcome === outcome).map(({ family, name }) => `${family}: ${name}`);

const ROLES = ['clients:manage', 'issuance:manage', 'issuance:offer', 'presentation:manage', 'presentation:request'];
const VCT = 'urn:attacked:card:1';
const DOC_TYPE = 'org.iso.18013.5.1.mDL';
const NAMESPACE = 'org.iso.18013.5.1';

/** A service in a separate process, with every feature that can be attacked. */
export type AttackedService = {
  readonly address: string;
  readonly clientId: string;
  readonly secret: string;
  /** Arguments of the tool for this service. */
  readonly target: readonly string[];
  /** Creates an offer and returns its link. */
  offer(flow?: 'pre_authorized_code' | 'authorization_code'): Promise<string>;
  /** Creates a presentation request and returns its link. */
  ask(): Promise<string>;
  close(): Promise<void>;
};

/** @param environment additional environment variables of the service. */
export async function startAttackedService(environment: Readonly<Record<string, string>> = {}): Promise<AttackedService> {
  const folder = mkdtempSync(join(tmpdir(), 'vidimus-attacked-'));
  const backend = await Backend.start();
  backend.on('/claims', { json: { deferred: true } });
  const provider = await WalletProvider.start();
  const port = await freePort(createServer);
  const address = `http://localhost:${port}`;
  const service = await startProcess({
    address,
    environment: {
      PORT: String(port),
      DATA_FOLDER: folder,
      LOG_LEVEL: 'silent',
      // The service may call addresses of this machine, where the test backend runs.
      OUTBOUND_ALLOW: '127.0.0.1/32',
      NODE_COMPILE_CACHE: minimalEnvironment()['NODE_COMPILE_CACHE'] ?? '',
      ...environment,
    },
  });
  const { clientId, secret } = service.root;
  const root = new AdminClient(address, clientId, secret);
  const close = async () => {
    await service.stop();
    await backend.close();
    await provider.close();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const tenant = await configure(address, root, backend.url, provider);
    const target = ['--vidimus', address, '--client-id', tenant.clientId, '--other-issuer', `${address}/other`];
    const admin = new AdminClient(address, tenant.clientId, tenant.secret);
    const link = async (path: string, body: object) => (await admin.post<{ uri: string }>(path, { response_type: 'uri', ...body })).uri;
    const offer: AttackedService['offer'] = (flow = 'pre_authorized_code') =>
      link('/issuer/offer', { flow, credentialConfigurationIds: ['card'] });
    const requestPresentation = () => link('/verifier/offer', { requestId: 'card' });
    return { address, ...tenant, target, offer, ask: requestPresentation, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function configure(address: string, root: AdminClient, backend: string, provider: WalletProvider) {
  const display = [{ name: 'Acme', locale: 'en' }];
  for (const id of ['other', 'acme']) await root.post('/tenant', { id, name: id, roles: ROLES });
  const clientId = 'acme-admin';
  const { secret } = await root.get<{ secret: string }>(`/client/${clientId}/secret`);
  const admin = new AdminClient(address, clientId, secret);
  await admin.post('/issuer/config', { display, batchSize: 3, ...provider.configuration(), walletAttestationRequired: false });
  const config = { format: 'dc+sd-jwt', scope: 'card', display };
  const addCredential = { config, vct: VCT, claims: { name: 'Ada', age: 36 }, disclosureFrame: { _sd: ['name', 'age'] } };
  await admin.post('/issuer/credentials', { id: 'card', ...addCredential, statusManagement: true });
  await admin.post('/issuer/credentials', {
    id: 'later',
    ...addCredential,
    config: { ...config, scope: 'later' },
    vct: `${VCT}:later`,
    claimsWebhook: { url: `${backend}/claims` },
  });
  await admin.post('/issuer/credentials', {
    id: 'licence',
    config: {
      format: 'mso_mdoc',
      scope: 'licence',
      docType: DOC_TYPE,
      display,
      claimsByNamespace: { [NAMESPACE]: { family_name: 'Lovelace', age_over_18: true } },
    },
  });
  const requestPresentation = (id: string, query: object) =>
    admin.post('/verifier/config', {
      id,
      dcql_query: { credentials: [{ id: 'asked', ...query }] },
      trustAnchors: [{ keyChainId: 'signing' }],
    });
  await requestPresentation('card', { format: 'dc+sd-jwt', meta: { vct_values: [VCT] }, claims: [{ path: ['name'] }] });
  await requestPresentation('licence', {
    format: 'mso_mdoc',
    meta: { doctype_value: DOC_TYPE },
    claims: [{ path: [NAMESPACE, 'family_name'] }],
  });
  return { clientId, secret };
}
