import { strict as assert } from 'node:assert';
import { approve } from '../wallets/openid4vc/browser.ts';
import { type PresentationRequest, readableClaims, type StoredCredential } from '../wallets/openid4vc/credentials.ts';
import { Openid4vcWallet } from '../wallets/openid4vc/wallet.ts';
import type { AdminClient } from './admin-client.ts';
import { Authorities } from './authorities.ts';
import { CITIZEN, type DemoBackend } from './backend.ts';
import { createEuropeanTenant, DONE } from './eu-tenant.ts';
import { LICENCE_CLAIMS, presentLicence } from './licence-holder.ts';
import { detail, fact, step } from './narrator.ts';
import type { Session } from './story.ts';
import { StrictReader } from './strict-reader.ts';
import type { DemoTenant } from './tenant.ts';

export const EU_HEADLINE = 'Vidimus under the profile `eu`: an attested wallet, a registered issuer and relying party';

const PID = { format: 'dc+sd-jwt', meta: { vct_values: ['urn:eudi:pid:1'] } };
const MDL = { format: 'mso_mdoc', meta: { doctype_value: 'org.iso.18013.5.1.mDL' } };

/** @param onStop takes what is to end with the demo. */
export async function tellEuropeanStory({
  address,
  root,
  backend,
  onStop,
}: {
  readonly address: string;
  readonly root: { readonly clientId: string; readonly secret: string };
  readonly backend: DemoBackend;
  readonly onStop: (stops: () => Promise<void>) => void;
}): Promise<DemoTenant> {
  step('1. What a European wallet has around it is started on this machine');
  const authorities = await Authorities.start();
  onStop(() => authorities.close());
  fact('registrar and access certificates', authorities.registrar.url);
  fact('wallet provider and its status list', authorities.provider.url);
  fact('trust lists', `${authorities.provider.url}/lote, ${authorities.listAddress}/{access-certificates,registrars}`);
  const stolen = authorities.newUnit();
  stolen.revoke();

  const tenant = await createEuropeanTenant(address, root, backend, authorities);
  const reader = await StrictReader.load(authorities.listAddress, authorities.operator);
  const wallet = new Openid4vcWallet(globalThis.fetch, authorities.newUnit().unit);
  const { pid, licence, offer } = await collect({ address, admin: tenant.admin, wallet, reader });
  await refuseOthers(tenant.admin, new Openid4vcWallet(globalThis.fetch, stolen.unit));
  await show({ admin: tenant.admin, wallet, reader }, pid, licence);
  await revoke({ admin: tenant.admin, wallet, reader }, offer, pid);
  return tenant;
}

type Holder = { readonly admin: AdminClient; readonly wallet: Openid4vcWallet; readonly reader: StrictReader };

async function collect({ address, admin, wallet, reader }: Holder & { readonly address: string }) {
  step('3. The wallet looks at the issuer before it takes anything');
  const issuer = await reader.checkIssuer(`${address}/demo`, [PID, MDL]);
  detail('metadata', 'signed under an authority on the list, with a registration certificate for both types');
  fact('issuer', issuer);

  step('4. It collects a person ID for two attested keys, and a driving licence (ISO mdoc)');
  const pidOffer = await offer(admin, 'pre_authorized_code', 'pid');
  const copies = await wallet.accept(pidOffer.uri, { batch: 2 });
  assert.equal(copies.length, 2, 'a credential for each key');
  const [pid] = copies;
  assert(pid, 'the wallet received no credential');
  assert.equal(readableClaims(pid.text)['family_name'], CITIZEN.family_name);
  detail('wallet', 'attested by its provider, with a status that the service looks up, and bound by DPoP');
  fact('person ID', `${copies.length} copies, one for each attested key`);
  const mdlOffer = await offer(admin, 'authorization_code', 'mdl');
  const [licence] = await wallet.acceptByCode(mdlOffer.uri, approve);
  assert(licence, 'the wallet received no driving licence');
  for (const { session } of [pidOffer, mdlOffer]) assert.equal((await admin.get<Session>(`/session/${session}`)).status, 'completed');
  fact('driving licence', 'by a pushed request, PKCE and a page to approve');
  return { pid, licence, offer: pidOffer };
}

async function refuseOthers(admin: AdminClient, stolen: Openid4vcWallet): Promise<void> {
  step('5. Others are refused: a wallet that its provider has revoked, and one that nobody attests');
  const wallets = [
    ['revoked', stolen],
    ['not attested', new Openid4vcWallet()],
  ] as const;
  for (const [description, wallet] of wallets) {
    const { uri } = await offer(admin, 'pre_authorized_code', 'pid');
    const rejectionMessage = await wallet.accept(uri).then(
      () => undefined,
      (error: unknown) => String((error as Error).message),
    );
    assert(rejectionMessage !== undefined, `a wallet that is ${description} received a credential`);
    const [, errorText] = /"error(?:_description)?\\?": ?\\?"([^"\\]+)/.exec(rejectionMessage) ?? [];
    fact(description, errorText ?? 'refused');
  }
}

async function show(holder: Holder, pid: StoredCredential, licence: StoredCredential): Promise<void> {
  step('6. A shop asks whether its customer is of age');
  const age = await fetchRequest(holder, 'age-check');
  const values = await readResult(holder, age, await holder.wallet.present(age.read, pid));
  assert.deepEqual(values, { given_name: CITIZEN.given_name, age_over_18: true });
  fact('the shop learned', JSON.stringify(values));

  step('7. A car rental asks for the driving licence');
  const rental = await fetchRequest(holder, 'licence-check');
  const device = presentLicence(rental.read, licence);
  const presentationResult = await readResult(holder, rental, await holder.wallet.answer(rental.read, device));
  assert.deepEqual(presentationResult, LICENCE_CLAIMS);
  fact('the car rental learned', JSON.stringify(presentationResult));
}

async function revoke(holder: Holder, issuedSession: { readonly session: string }, pid: StoredCredential): Promise<void> {
  step('8. The ministry revokes the person ID, and it is refused');
  await holder.admin.post('/session/revoke', { sessionId: issuedSession.session, status: 1 });
  const { session, read } = await fetchRequest(holder, 'age-check');
  const answer = await holder.wallet.present(read, pid);
  assert.equal(answer.status, 400, 'a revoked credential must be refused');
  const rejectedSession = await holder.admin.get<Session>(`/session/${session}`);
  assert.match(JSON.stringify(rejectedSession), /status_revoked/, 'the operator sees why');
  fact('why', String(rejectedSession.failure?.message));
}

type FetchedRequest = { readonly session: string; readonly read: PresentationRequest };
type WalletResponse = { readonly status: number; readonly body: Readonly<Record<string, unknown>> };

async function fetchRequest({ admin, wallet, reader }: Holder, requestId: string): Promise<FetchedRequest> {
  const body = { response_type: 'uri', requestId };
  const { uri, session } = await admin.post<{ uri: string; session: string }>('/verifier/offer', body);
  const read = await wallet.readRequest(uri);
  const verifierName = await reader.checkRequest(read.signedBy, read.payload);
  detail('the wallet reads', `signed under an authority on the list, registered for every claim; asked by ${verifierName}`);
  return { session, read };
}

/** The browser comes back with the code, without which the service shows nothing. @returns what was shown. */
async function readResult({ admin }: Holder, { session }: FetchedRequest, answer: WalletResponse): Promise<unknown> {
  assert.equal(answer.status, 200, `the presentation was refused: ${JSON.stringify(answer.body)}`);
  const back = new URL(String(answer.body['redirect_uri']));
  assert.equal(back.origin + back.pathname, DONE);
  const code = encodeURIComponent(back.searchParams.get('response_code') ?? '');
  const { status, credentials } = await admin.get<Session>(`/session/${session}?response_code=${code}`);
  assert.equal(status, 'completed');
  detail('the browser is back', 'its response code opened the answer');
  return (credentials as { values?: unknown }[])[0]?.values;
}

function offer(admin: AdminClient, flow: string, id: string): Promise<{ uri: string; session: string }> {
  return admin.post('/issuer/offer', { response_type: 'uri', flow, credentialConfigurationIds: [id] });
}
