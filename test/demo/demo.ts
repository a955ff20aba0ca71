/**
 * `npm run demo`: the whole service in one command. Starts Vidimus on its embedded defaults, makes a tenant from
 * `config/examples/demo`, and lets an independent wallet receive, present and lose a credential. Ends with 0 only if
 * everything really happened. `-- --keep` leaves the service running.
 */

import { strict as assert } from 'node:assert';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { renderUnicodeCompact } from 'uqr';
import { approve } from '../wallets/openid4vc/browser.ts';
import { readableClaims, type StoredCredential } from '../wallets/openid4vc/credentials.ts';
import { Openid4vcWallet } from '../wallets/openid4vc/wallet.ts';
import { AdminClient } from './admin-client.ts';
import { CITIZEN, type DemoBackend, startBackend } from './backend.ts';
import { LICENCE_CLAIMS, presentLicence } from './licence-holder.ts';
import { detail, done, fact, headline, step } from './narrator.ts';
import { freePort, startProcess } from './process.ts';

const keep = readKeep();
const examples = new URL('../../config/examples/demo/', import.meta.url);

type Session = {
  status: string;
  credentials?: unknown[];
  failure?: { message?: string };
  report?: unknown[];
  notifications?: Record<string, unknown>[];
};

/** The one option there is. */
function readKeep(): boolean {
  try {
    return parseArgs({ options: { keep: { type: 'boolean', default: false } } }).values.keep;
  } catch {
    console.error('usage: npm run demo [-- --keep]');
    process.exit(2);
  }
}

async function main(): Promise<void> {
  const began = performance.now();
  const folder = mkdtempSync(join(tmpdir(), 'vidimus-demo-'));
  const backend = await startBackend('demo-backend-key');
  // A service that stays is where it is looked for.
  const wanted = keep ? Number(process.env['PORT'] ?? '') : 0;
  const port = wanted > 0 ? wanted : await freePort(createServer);
  const address = `http://localhost:${port}`;
  headline('Vidimus: a credential is issued, presented, verified and revoked');
  step('Starting the service on its embedded defaults (SQLite, local sealed keys, generated secrets)');
  const service = await startProcess({
    address,
    environment: {
      PORT: String(port),
      DATA_FOLDER: folder,
      OUTBOUND_ALLOW: '127.0.0.1/32',
      LOG_LEVEL: 'warn',
    },
  });
  let ended = false;
  const stop = async () => {
    if (ended) return;
    ended = true;
    await service.stop();
    await backend.close();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    fact('address', address);
    const tenant = await createTenant(address, service.root, backend);
    await story(tenant, backend);
    done(`Everything happened, in ${((performance.now() - began) / 1000).toFixed(1)} seconds.`);
    if (!keep) return await stop();
    headline('The service keeps running. Stop it with Ctrl+C.');
    fact('address', address);
    fact('API reference', `${address}/docs`);
    fact('tenant client', `${tenant.clientId} / ${tenant.secret}`);
    fact('root client', `${service.root.clientId} / ${service.root.secret}`);
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      process.once(signal, () => void stop().then(() => process.exit(0)));
  } catch (error) {
    await stop();
    throw error;
  }
}

type DemoTenant = { readonly admin: AdminClient; readonly clientId: string; readonly secret: string };

async function createTenant(
  address: string,
  root: { clientId: string; secret: string },
  backend: DemoBackend,
): Promise<DemoTenant> {
  step('Creating the tenant "demo" from config/examples/demo');
  const rootClient = new AdminClient(address, root.clientId, root.secret);
  await rootClient.post('/tenant', example('tenant.json', backend));
  const clientId = 'demo-admin';
  const { secret } = await rootClient.get<{ secret: string }>(`/client/${clientId}/secret`);
  const admin = new AdminClient(address, clientId, secret);
  await admin.post('/issuer/config', example('issuance/config.json', backend));
  await admin.post('/issuer/credentials', example('issuance/credentials/pid.json', backend));
  await admin.post('/issuer/credentials', example('issuance/credentials/mdl.json', backend));
  await admin.post('/verifier/config', example('presentation/age-check.json', backend));
  await admin.post('/verifier/config', example('presentation/licence-check.json', backend));
  fact(
    'made',
    'a tenant with its own certification authority, two credentials ("pid", "mdl") and two questions ' +
      '("age-check", "licence-check")',
  );
  return { admin, clientId, secret };
}

/** Files of the example with their placeholders filled in. */
function example(file: string, backend: DemoBackend): unknown {
  const text = readFileSync(new URL(file, examples), 'utf8');
  const values: Record<string, string> = { DEMO_BACKEND: backend.url, DEMO_API_KEY: backend.apiKey };
  return JSON.parse(text.replaceAll(/\$\{([A-Z_]+)\}/g, (_, name: string) => values[name] ?? ''));
}

async function story({ admin }: DemoTenant, backend: DemoBackend): Promise<void> {
  const wallet = new Openid4vcWallet();

  step('1. The backend offers a credential');
  const offer = await admin.post<{ uri: string; session: string }>('/issuer/offer', {
    response_type: 'uri',
    flow: 'pre_authorized_code',
    credentialConfigurationIds: ['pid'],
  });
  detail('POST /issuer/offer', `session ${offer.session}`);
  console.log(renderUnicodeCompact(offer.uri, { border: 2 }));
  fact('offer', offer.uri);
  assert.equal((await admin.get<Session>(`/session/${offer.session}`)).status, 'active');

  step('2. A wallet scans the code and collects the credential');
  const [credential] = await wallet.accept(offer.uri);
  assert(credential, 'the wallet received no credential');
  const claims = backend.calls.find((call) => call.path === '/claims');
  assert.equal(claims?.body['session'], offer.session, 'the claims webhook was called');
  detail('token', 'the pre-authorized code became an access token bound to the wallet with DPoP');
  detail('webhook', 'the service asked the backend for the claims: POST /claims');
  detail('credential', `SD-JWT VC, ${credential.text.length} characters, signature checked by the wallet`);
  for (const [name, value] of Object.entries(readableClaims(credential.text)))
    fact(name, JSON.stringify(value));
  assert.equal(readableClaims(credential.text)['family_name'], CITIZEN.family_name);
  assert.equal((await admin.get<Session>(`/session/${offer.session}`)).status, 'completed');
  fact('session', 'completed');

  step('3. It collects a driving licence (ISO mdoc), which its user approves on a page');
  const licence = await admin.post<{ uri: string; session: string }>('/issuer/offer', {
    response_type: 'uri',
    flow: 'authorization_code',
    credentialConfigurationIds: ['mdl'],
  });
  const [mdoc] = await wallet.acceptByCode(licence.uri, approve);
  assert(mdoc, 'the wallet received no driving licence');
  detail('authorization', 'pushed request, PKCE, a page to approve, a code that works once');
  detail('credential', `mdoc, ${Buffer.from(mdoc.text, 'base64url').length} bytes of CBOR`);
  const session = await admin.get<Session>(`/session/${licence.session}`);
  assert.deepEqual([session.status, session.notifications?.length], ['completed', 1]);
  fact('the wallet reports', String(session.notifications?.[0]?.['event']));

  step('4. A shop asks whether its customer is of age');
  const first = await present(admin, wallet, credential);
  assert.equal(
    first.answer.status,
    200,
    `the presentation was refused: ${JSON.stringify(first.answer.body)}`,
  );
  const verified = await admin.get<Session>(`/session/${first.session}`);
  assert.equal(verified.status, 'completed');
  const presented = backend.calls.filter((call) => call.path === '/presented').at(-1);
  const entries = (presented?.body['credentials'] ?? []) as { values?: Record<string, unknown> }[];
  const values = entries[0]?.values;
  assert.deepEqual(
    values,
    { given_name: CITIZEN.given_name, age_over_18: true },
    'only what was asked arrives',
  );
  detail(
    'verified',
    'issuer signature, certificate chain, validity, key binding, nonce, audience and status',
  );
  fact('the shop learned', JSON.stringify(values));
  fact('the browser goes to', String(first.answer.body['redirect_uri']));

  step('5. A car rental asks for the driving licence');
  await showLicence(admin, wallet, mdoc);

  step('6. The ministry revokes the credential');
  const revoked = await admin.post('/session/revoke', { sessionId: offer.session, status: 1 });
  detail('POST /session/revoke', JSON.stringify(revoked));

  step('7. The wallet presents it again, and is refused');
  const second = await present(admin, wallet, credential);
  assert.equal(second.answer.status, 400, 'a revoked credential must be refused');
  detail('the wallet was told', JSON.stringify(second.answer.body));
  const refused = await admin.get<Session>(`/session/${second.session}`);
  assert.equal(refused.status, 'failed');
  const error = backend.calls.filter((call) => call.path === '/presented').at(-1)?.body['credentials'];
  assert.match(JSON.stringify(refused), /status_revoked/, 'the operator sees why');
  fact('session', 'failed');
  fact('why', String(refused.failure?.message));
  fact('the backend was told', JSON.stringify(error));
}

async function present(admin: AdminClient, wallet: Openid4vcWallet, credential: StoredCredential) {
  const { session, read } = await ask(admin, wallet, 'age-check');
  const answer = await wallet.present(read, credential);
  detail('the wallet sends', `an encrypted presentation; answer ${answer.status}`);
  return { session, answer };
}

async function showLicence(admin: AdminClient, wallet: Openid4vcWallet, mdoc: StoredCredential) {
  const { session, read } = await ask(admin, wallet, 'licence-check');
  const answer = await wallet.answer(read, presentLicence(read, mdoc));
  detail('the wallet sends', `an encrypted DeviceResponse; answer ${answer.status}`);
  assert.equal(answer.status, 200, `the licence was refused: ${JSON.stringify(answer.body)}`);
  const { status, credentials } = await admin.get<Session>(`/session/${session}`);
  const [{ issuer, ...shown } = {}] = (credentials ?? []) as { issuer?: { subject?: string } }[];
  assert.deepEqual(
    [status, credentials?.length, shown],
    ['completed', 1, { id: 'licence', values: LICENCE_CLAIMS }],
  );
  fact('signed by', issuer?.subject ?? 'nobody');
  detail('verified', 'issuer signature, certificate chain, validity, digests, device signature and status');
  fact('the car rental learned', JSON.stringify(LICENCE_CLAIMS));
}

async function ask(admin: AdminClient, wallet: Openid4vcWallet, requestId: string) {
  const body = { response_type: 'uri', requestId };
  const { uri, session } = await admin.post<{ uri: string; session: string }>('/verifier/offer', body);
  detail('POST /verifier/offer', `session ${session}`);
  const read = await wallet.readRequest(uri);
  const asked = Object.values(read.asked).flat().join(', ');
  detail('the wallet reads', `signed by ${read.clientId.slice(0, 40)}…, asks for ${asked}`);
  return { session, read };
}

await main().catch((error: unknown) => {
  console.error('\nThe demo failed:', error instanceof Error ? (error.stack ?? error.message) : error);
  process.exitCode = 1;
  process.exit();
});
