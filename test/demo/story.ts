import { strict as assert } from 'node:assert';
import { renderUnicodeCompact } from 'uqr';
import { approve } from '../wallets/openid4vc/browser.ts';
import { readableClaims, type StoredCredential } from '../wallets/openid4vc/credentials.ts';
import { Openid4vcWallet } from '../wallets/openid4vc/wallet.ts';
import type { AdminClient } from './admin-client.ts';
import { CITIZEN, type DemoBackend } from './backend.ts';
import { LICENCE_CLAIMS, presentLicence } from './licence-holder.ts';
import { detail, fact, step } from './narrator.ts';
import type { DemoTenant } from './tenant.ts';

export type Session = {
  status: string;
  credentials?: unknown[];
  failure?: { message?: string };
  report?: unknown[];
  notifications?: Record<string, unknown>[];
};

/** A credential is issued, presented, verified and revoked, at a tenant without a profile. */
export async function tellStory({ admin }: DemoTenant, backend: DemoBackend): Promise<void> {
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
  for (const [name, value] of Object.entries(readableClaims(credential.text))) fact(name, JSON.stringify(value));
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
  const firstResult = await present(admin, wallet, credential);
  assert.equal(firstResult.answer.status, 200, `the presentation was refused: ${JSON.stringify(firstResult.answer.body)}`);
  const verified = await admin.get<Session>(`/session/${firstResult.session}`);
  assert.equal(verified.status, 'completed');
  const webhookCall = backend.calls.filter((call) => call.path === '/presented').at(-1);
  const entries = (webhookCall?.body['credentials'] ?? []) as { values?: Record<string, unknown> }[];
  const values = entries[0]?.values;
  assert.deepEqual(values, { given_name: CITIZEN.given_name, age_over_18: true }, 'only what was asked arrives');
  detail('verified', 'issuer signature, certificate chain, validity, key binding, nonce, audience and status');
  fact('the shop learned', JSON.stringify(values));
  fact('the browser goes to', String(firstResult.answer.body['redirect_uri']));

  step('5. A car rental asks for the driving licence');
  await showLicence(admin, wallet, mdoc);

  step('6. The ministry revokes the credential');
  const revocation = await admin.post('/session/revoke', { sessionId: offer.session, status: 1 });
  detail('POST /session/revoke', JSON.stringify(revocation));

  step('7. The wallet presents it again, and is refused');
  const secondResult = await present(admin, wallet, credential);
  assert.equal(secondResult.answer.status, 400, 'a revoked credential must be refused');
  detail('the wallet was told', JSON.stringify(secondResult.answer.body));
  const rejectedSession = await admin.get<Session>(`/session/${secondResult.session}`);
  assert.equal(rejectedSession.status, 'failed');
  const error = backend.calls.filter((call) => call.path === '/presented').at(-1)?.body['credentials'];
  assert.match(JSON.stringify(rejectedSession), /status_revoked/, 'the operator sees why');
  fact('session', 'failed');
  fact('why', String(rejectedSession.failure?.message));
  fact('the backend was told', JSON.stringify(error));
}

async function present(admin: AdminClient, wallet: Openid4vcWallet, credential: StoredCredential) {
  const { session, read: fetchedRequest } = await fetchRequest(admin, wallet, 'age-check');
  const answer = await wallet.present(fetchedRequest, credential);
  detail('the wallet sends', `an encrypted presentation; answer ${answer.status}`);
  return { session, answer };
}

async function showLicence(admin: AdminClient, wallet: Openid4vcWallet, mdoc: StoredCredential) {
  const { session, read: fetchedRequest } = await fetchRequest(admin, wallet, 'licence-check');
  const answer = await wallet.answer(fetchedRequest, presentLicence(fetchedRequest, mdoc));
  detail('the wallet sends', `an encrypted DeviceResponse; answer ${answer.status}`);
  assert.equal(answer.status, 200, `the licence was refused: ${JSON.stringify(answer.body)}`);
  const { status, credentials } = await admin.get<Session>(`/session/${session}`);
  const [{ issuer, ...shown } = {}] = (credentials ?? []) as { issuer?: { subject?: string } }[];
  assert.deepEqual([status, credentials?.length, shown], ['completed', 1, { id: 'licence', values: LICENCE_CLAIMS }]);
  fact('signed by', issuer?.subject ?? 'nobody');
  detail('verified', 'issuer signature, certificate chain, validity, digests, device signature and status');
  fact('the car rental learned', JSON.stringify(LICENCE_CLAIMS));
}

async function fetchRequest(admin: AdminClient, wallet: Openid4vcWallet, requestId: string) {
  const body = { response_type: 'uri', requestId };
  const { uri, session } = await admin.post<{ uri: string; session: string }>('/verifier/offer', body);
  detail('POST /verifier/offer', `session ${session}`);
  const fetchedRequest = await wallet.readRequest(uri);
  const requestedClaims = Object.values(fetchedRequest.asked).flat().join(', ');
  detail('the wallet reads', `signed by ${fetchedRequest.clientId.slice(0, 40)}…, asks for ${requestedClaims}`);
  return { session, read: fetchedRequest };
}
