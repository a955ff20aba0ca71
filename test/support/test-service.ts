import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Secrets } from '../../application/ports/secrets.ts';
import { type RunningService, startService } from '../../bootstrap/start/service.ts';
import { readSettings } from '../../config/settings.ts';
import { freePort } from '../demo/process.ts';
import { createSqliteFile } from './databases.ts';
import { ResponseValidator } from './documented.ts';
import { useCheapSecretHashes } from './quick-secrets.ts';

export const ROOT = { clientId: 'root', secret: 'root-secret-for-the-tests' };
export const MASTER_SECRET = 'a master secret for the tests 0123456789';

export type TestService = {
  readonly address: string;
  readonly service: RunningService;
  /** Validates every response to `call`. */
  readonly documentation: ResponseValidator;
  /** Sends a request; JSON bodies are serialized. */
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
  /** Access token of a client. */
  token(clientId: string, secret: string): Promise<string>;
  rootToken(): Promise<string>;
  close(): Promise<void>;
};

/** The part of a service that calls need. */
export type Callable = Pick<TestService, 'address' | 'call' | 'token' | 'rootToken'>;

export type CallOptions = {
  readonly token?: string;
  readonly json?: unknown;
  readonly form?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly text?: string;
};

export type Answer = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed body; undefined when it is not JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly body: any;
};

const folders: string[] = [];
/** Data folders, including those of services that a test stopped itself. */
process.once('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

const dataFolders = new Map<string, string>();

/**
 * The data folder for services on one database, which rejects a start with another folder. Services on an SQLite file store
 * this beside the file.
 */
export function dataFolderOf(databaseUrl: string | undefined): string {
  const formerFolder = databaseUrl === undefined ? undefined : dataFolders.get(databaseUrl);
  if (formerFolder !== undefined) return formerFolder;
  const folder = mkdtempSync(join(tmpdir(), 'vidimus-test-'));
  folders.push(folder);
  if (databaseUrl !== undefined) dataFolders.set(databaseUrl, folder);
  return folder;
}

/** Starts the service in this process, on a fresh SQLite file by default. */
export async function startTestService(
  environment: Readonly<Record<string, string>> = {},
  { runsJobs = false }: { readonly runsJobs?: boolean } = {},
): Promise<TestService> {
  const folder = dataFolderOf(environment['DATABASE_URL']);
  if (environment['DATABASE_URL'] === undefined) await createSqliteFile(join(folder, 'vidimus.sqlite'));
  const port = await freePort(createServer);
  const address = `http://localhost:${port}`;
  const settings = readSettings({
    HOST: '127.0.0.1',
    PORT: String(port),
    DATA_FOLDER: folder,
    MASTER_SECRET,
    AUTH_CLIENT_ID: ROOT.clientId,
    AUTH_CLIENT_SECRET: ROOT.secret,
    LOG_LEVEL: 'silent',
    OUTBOUND_ALLOW: '127.0.0.1/32',
    ...environment,
  });
  const service = await startService(settings, environment, { isFirst: true, listens: true, runsJobs });
  useCheapSecretHashes(service.container.get(Secrets));
  const baseUrl = settings.PUBLIC_URL.startsWith('http://localhost') ? settings.PUBLIC_URL : address;
  const tokens = new Map<string, string>();
  const documentation = ResponseValidator.forService(service, environment);

  const call = async (method: string, path: string, options: CallOptions = {}): Promise<Answer> => {
    const { token, json, form, text, headers } = options;
    const type = json !== undefined ? 'application/json' : form !== undefined ? 'application/x-www-form-urlencoded' : undefined;
    const body = json !== undefined ? JSON.stringify(json) : form !== undefined ? new URLSearchParams(form).toString() : text;
    const answer = await fetch(path.startsWith('http') ? path : baseUrl + path, {
      method,
      redirect: 'manual',
      headers: {
        ...(type === undefined ? {} : { 'Content-Type': type }),
        ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
        ...headers,
      },
      ...(body === undefined ? {} : { body }),
    });
    const content = await answer.text();
    const responseParts = { status: answer.status, headers: answer.headers, text: content, body: parse(content) };
    const problem = documentation.findProblem(method, path.replace(baseUrl, ''), {
      ...responseParts,
      contentType: answer.headers.get('content-type'),
    });
    if (problem !== undefined) throw new Error(`${problem}: ${content.slice(0, 500)}`);
    return responseParts;
  };
  const token = async (clientId: string, secret: string) => {
    const cachedToken = tokens.get(`${clientId} ${secret}`);
    if (cachedToken !== undefined) return cachedToken;
    const answer = await call('POST', '/oauth2/token', {
      json: { grant_type: 'client_credentials', client_id: clientId, client_secret: secret },
    });
    if (answer.status !== 200) throw new Error(`no token for ${clientId}: ${answer.status} ${answer.text}`);
    tokens.set(`${clientId} ${secret}`, answer.body.access_token);
    return answer.body.access_token as string;
  };
  return {
    address: baseUrl,
    service,
    documentation,
    call,
    token,
    rootToken: () => token(ROOT.clientId, ROOT.secret),
    async close() {
      await service.close(2_000);
      if (environment['DATABASE_URL'] === undefined) rmSync(folder, { recursive: true, force: true });
    },
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Every role of a tenant. */
export const TENANT_ROLES = [
  'clients:manage',
  'issuance:manage',
  'issuance:offer',
  'presentation:manage',
  'presentation:request',
  'registrar:manage',
] as const;

/** Creates a tenant with an administrator who has every role. */
export async function createTenant(
  service: Callable,
  id: string,
  extra: Readonly<Record<string, unknown>> = {},
): Promise<{ id: string; token: string; clientId: string }> {
  const token = await service.rootToken();
  const tenantResponse = await service.call('POST', '/tenant', {
    token,
    json: { id, name: `Tenant ${id}`, roles: TENANT_ROLES, ...extra },
  });
  if (tenantResponse.status !== 201) throw new Error(`tenant ${id}: ${tenantResponse.status} ${tenantResponse.text}`);
  const clientId = `${id}-admin`;
  const secretResponse = await service.call('GET', `/client/${clientId}/secret`, { token });
  return { id, clientId, token: await service.token(clientId, secretResponse.body.secret) };
}
