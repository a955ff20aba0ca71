import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { parse } from 'yaml';
import { ROLES } from '../../domain/clients/role.ts';
import { freePort, type ServiceProcess, startProcess } from '../demo/process.ts';
import { runProgram, stopPrograms } from '../support/programs.ts';
import { Openid4vcWallet } from '../wallets/openid4vc/wallet.ts';

const EXAMPLE = fileURLToPath(new URL('../../examples/keycloak/', import.meta.url));
const readExample = (name: string) => readFileSync(join(EXAMPLE, name), 'utf8');
const SECRETS: Readonly<Record<string, string>> = {
  OIDC_CLIENT_SECRET: 'the secret of the service',
  OPERATOR_SECRET: 'the secret of the operator',
  ACME_SECRET: 'the secret of the backend: 100 % +',
};

type Realm = {
  readonly realm: string;
  readonly accessTokenLifespan: number;
  readonly roles: { readonly realm: readonly { readonly name: string }[] };
  readonly clients: readonly {
    readonly clientId: string;
    readonly secret: string;
    readonly serviceAccountsEnabled: boolean;
    readonly publicClient: boolean;
    readonly standardFlowEnabled: boolean;
    readonly protocolMappers?: readonly { readonly protocolMapper: string; readonly config: Readonly<Record<string, string>> }[];
  }[];
  readonly users: readonly { readonly serviceAccountClientId: string; readonly realmRoles: readonly string[] }[];
};
const REALM = JSON.parse(readExample('realm.json')) as Realm;

type Provider = { readonly issuer: string; stop(): Promise<void> };

/** Claims of access tokens of service accounts that Keycloak derives from the realm file. */
function expectedClaims(clientId: string): Record<string, unknown> {
  const { protocolMappers = [] } = REALM.clients.find((client) => client.clientId === clientId) ?? {};
  const account = REALM.users.find(({ serviceAccountClientId }) => serviceAccountClientId === clientId);
  const claims: Record<string, unknown> = { azp: clientId, typ: 'Bearer' };
  if (account !== undefined) claims['realm_access'] = { roles: account.realmRoles };
  for (const { protocolMapper, config } of protocolMappers) {
    expect(config['access.token.claim']).to.equal('true');
    if (protocolMapper === 'oidc-audience-mapper') claims['aud'] = config['included.custom.audience'];
    else if (protocolMapper === 'oidc-hardcoded-claim-mapper') claims[config['claim.name'] ?? ''] = config['claim.value'];
    else throw new Error(`unknown protocol mapper: ${protocolMapper}`);
  }
  return claims;
}

async function startFakeProvider(port: number): Promise<Provider> {
  const { privateKey, publicKey } = await generateKeyPair('RS256');
  const jwk = { ...(await exportJWK(publicKey)), kid: 'one', alg: 'RS256', use: 'sig' };
  const issuer = `http://localhost:${port}/realms/${REALM.realm}`;
  const issueToken = async (basicCredentials: string) => {
    // RFC 6749 section 2.3.1: form-encoded, where a plus is a space.
    const credentialParts = Buffer.from(basicCredentials, 'base64').toString().split(':');
    const [id = '', secret = ''] = credentialParts.map((part) => decodeURIComponent(part.replaceAll('+', ' ')));
    const client = REALM.clients.find(({ clientId }) => clientId === id);
    if (client?.secret.replace(/^\$\{(\w+)\}$/, (_, name: string) => SECRETS[name] ?? '') !== secret) return;
    const token = new SignJWT(expectedClaims(id)).setProtectedHeader({ alg: 'RS256', kid: 'one', typ: 'JWT' });
    const seconds = REALM.accessTokenLifespan;
    const text = await token.setIssuer(issuer).setIssuedAt().setExpirationTime(`${seconds}s`).sign(privateKey);
    return { access_token: text, token_type: 'Bearer', expires_in: seconds };
  };
  const server: Server = createServer(async (request, response) => {
    const path = request.url?.slice(new URL(issuer).pathname.length);
    const [, basicCredentials = ''] = /^Basic (.+)$/.exec(request.headers.authorization ?? '') ?? [];
    const tokenResponse: Record<string, unknown> = {
      '/.well-known/openid-configuration': {
        issuer,
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/certs`,
        authorization_endpoint: `${issuer}/auth`,
      },
      '/certs': { keys: [jwk] },
      '/token': await issueToken(basicCredentials),
    };
    const body = tokenResponse[path ?? ''];
    response.writeHead(body === undefined ? 401 : 200, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify(body ?? { error: 'invalid_client' }));
  });
  await new Promise<void>((resolve) => server.listen(port, resolve));
  return {
    issuer,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Starts Keycloak from the folder `KEYCLOAK_HOME`. */
async function keycloak(home: string, port: number): Promise<Provider> {
  const folder = mkdtempSync(join(tmpdir(), 'vidimus-keycloak-'));
  cpSync(home, folder, { recursive: true });
  mkdirSync(join(folder, 'data/import'), { recursive: true });
  cpSync(join(EXAMPLE, 'realm.json'), join(folder, 'data/import/realm.json'));
  const args = ['start-dev', '--import-realm', `--http-port=${port}`];
  const child: ChildProcess = spawn(join(folder, 'bin/kc.sh'), args, {
    env: { PATH: process.env['PATH'], ...SECRETS },
    stdio: 'ignore',
    detached: true,
  });
  const issuer = `http://localhost:${port}/realms/${REALM.realm}`;
  for (let tries = 0; tries < 240; tries++) {
    const answer = await fetch(issuer).catch(() => undefined);
    if (answer?.ok) break;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  return {
    issuer,
    async stop() {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}

const HOME = process.env['KEYCLOAK_HOME'];

describe(`Keycloak example${HOME === undefined ? ' (realm file only)' : ' (with Keycloak)'}`, () => {
  let folder: string;
  let provider: Provider;
  let service: ServiceProcess;
  let environment: Record<string, string>;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'vidimus-example-'));
    const [port, keycloakPort] = [await freePort(createTcpServer), await freePort(createTcpServer)];
    provider = await (HOME === undefined ? startFakeProvider(keycloakPort) : keycloak(HOME, keycloakPort));
    const address = `http://localhost:${port}`;
    service = await startProcess({
      address,
      environment: {
        PORT: String(port),
        DATA_FOLDER: folder,
        OIDC: provider.issuer,
        OIDC_CLIENT_ID: 'vidimus',
        OIDC_CLIENT_SECRET: SECRETS['OIDC_CLIENT_SECRET'] ?? '',
        OIDC_ALGORITHM: 'RS256',
      },
    });
    environment = { PATH: process.env['PATH'] ?? '', OIDC: provider.issuer, VIDIMUS_URL: address, ...SECRETS };
  });
  afterEach(stopPrograms);
  after(async () => {
    await service?.stop();
    await provider?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const backend = (changes: Record<string, string> = {}) =>
    runProgram(process.execPath, [join(EXAMPLE, 'backend.mjs')], { environment: { ...environment, ...changes } });

  it('creates a tenant as the operator and an offer as the backend, which a wallet accepts', async () => {
    const { code, output } = await backend();
    expect(code, output).to.equal(0);
    expect(await new Openid4vcWallet().accept(output.trim())).to.have.length(1);
    const health = await (await fetch(`${environment['VIDIMUS_URL']}/health`)).json();
    expect((health as { info: object }).info).to.have.property('identity-provider');
  });

  it('rejects a wrong secret', async () => {
    const { code, output } = await backend({ OPERATOR_SECRET: 'guessed' });
    expect([code, output]).to.satisfy(([status]: [number]) => status === 1);
    expect(output).to.match(/answers 401.*(invalid|unauthorized)_client/s);
  });

  it('has a realm with every role of the service, no secret, and no client for browsers', () => {
    expect(REALM.roles.realm.map(({ name }) => name)).to.have.members([...ROLES]);
    for (const client of REALM.clients) {
      expect(client.secret, client.clientId).to.match(/^\$\{[A-Z_]+\}$/);
      expect([client.publicClient, client.standardFlowEnabled]).to.deep.equal([false, false]);
      expect(client.serviceAccountsEnabled).to.equal(true);
    }
    for (const { realmRoles } of REALM.users) expect(ROLES).to.include.members([...realmRoles]);
  });

  it('has a compose file that passes the secrets to the realm, and listens on the loopback interface only', () => {
    const { keycloak: service } = parse(readExample('compose.yaml')).services;
    for (const name of Object.keys(SECRETS)) expect(service.environment[name]).to.equal(`\${${name}:?}`);
    expect(service.command).to.include('--import-realm');
    expect(service.volumes).to.deep.equal(['./realm.json:/opt/keycloak/data/import/realm.json:ro']);
    for (const port of service.ports) expect(port).to.match(/^127\.0\.0\.1:/);
  });
});
