import { strict as assert } from 'node:assert';
import { CLAIMS, COPIES, configurationId, type IssuedKind, isStrict, PAGE, queryIdOf, SHOWN, type TestedTenant } from './tenant.ts';
import type { Format, Profile } from './verdict.ts';
import type { Answer, CredentialOfferInput, PageRequest, WalletRun } from './wallet.ts';

/** The flows, in the order of the table. */
export const FLOWS = {
  preAuthorized: 'issuance by a pre-authorized code',
  txCode: 'issuance by a pre-authorized code with tx_code',
  code: 'issuance by an authorization code (PAR, PKCE)',
  interactive: 'issuance after a presentation (OpenID4VCI 1.1 section 6)',
  deferred: 'deferred issuance',
  batch: 'batch of two keys',
  listKey: 'issuance with a status list that has a key of its own',
  notification: 'notification of what was received',
  refresh: 'renewal by refresh token',
  sameDevice: 'presentation on the same device, direct_post.jwt',
  crossDevice: 'presentation on another device, direct_post.jwt',
  plain: 'presentation on another device, direct_post',
  page: 'presentation to a page (DC API), signed request',
  unsignedPage: 'presentation to a page (DC API), unsigned request',
  severalSigners: 'presentation to a page (DC API), request of several signers',
  encrypted: 'presentation with a request that is encrypted for the wallet',
  validated: 'what was issued is valid by a trust list that the tenant publishes',
  revoked: 'a revoked credential is refused',
} as const;
export type Flow = keyof typeof FLOWS;

/** Flows whose credential may come from another tenant. */
export const PRESENTING: readonly Flow[] = [
  ...(['sameDevice', 'crossDevice', 'plain', 'page', 'unsignedPage', 'severalSigners', 'encrypted', 'revoked'] as const),
];

/** Flows for tools that are wallet providers, too. */
export const OWN_LIST = 'the list of wallet providers that the tool publishes';

type Stage = {
  /** Issues, and is the one that asks unless the wallet gets nothing there. */
  readonly issuer: TestedTenant;
  readonly tenant: TestedTenant;
  readonly format: Format;
  readonly wallet: WalletRun;
};
type Session = {
  readonly status: string;
  readonly credentials?: readonly { values?: unknown }[];
  readonly failure?: { readonly message?: string };
  readonly notifications?: readonly { readonly event: string }[];
};

/** @returns why a profile has no such flow. */
export function forbids(profile: Profile, flow: Flow): string | undefined {
  if (!isStrict(profile)) return undefined;
  if (flow === 'plain') return 'answers in the clear (HAIP 1.0 section 5.1)';
  if (flow === 'crossDevice') return 'a request by a link needs an address to come back to (HAIP 1.0 section 5.1)';
  return undefined;
}

/** Each throws when the wallet rejects, or when the service reports another result. */
export const STEPS: Readonly<Record<Flow, (stage: Stage) => Promise<void>>> = {
  preAuthorized: (stage) => issue(stage, {}),
  txCode: (stage) => issue(stage, { txCode: '493536' }),
  code: (stage) => issue(stage, { grant: 'authorization_code' }),
  interactive: async (stage) => {
    await issue(stage, {});
    await issue(stage, { grant: 'authorization_code' }, 'after-showing');
  },
  deferred,
  batch: async (stage) => {
    const { copies } = await createOffer(stage, { batch: COPIES });
    assert.equal(copies, COPIES, 'a credential for each key');
  },
  listKey: (stage) => issue(stage, {}, 'by-two-keys'),
  notification: async (stage) => {
    const { session } = await createOffer(stage, {});
    const { notifications = [] } = await readSession(stage, session);
    assert.deepEqual(
      notifications.map(({ event }) => event),
      ['credential_accepted'],
      'the wallet told that it has the credential',
    );
  },
  refresh: async (stage) => {
    await createOffer(stage, { grant: 'authorization_code' });
    assert((await stage.wallet.renew()) > 0, 'nothing came');
  },
  sameDevice: (stage) => presentedAndBack(stage, 'back'),
  encrypted: (stage) => presentedAndBack(stage, 'posted'),
  validated: async (stage) => {
    await issue(stage, {});
    assert(stage.wallet.validate, 'it cannot be asked');
    await stage.wallet.validate(await stage.tenant.trustList());
  },
  crossDevice: (stage) => expectPresented(stage, 'sealed'),
  plain: (stage) => expectPresented(stage, 'plain'),
  page: (stage) => presentedToPage(stage, 'sealed'),
  severalSigners: (stage) => presentedToPage(stage, 'several'),
  unsignedPage: (stage) => presentedToPage(stage, 'unsigned'),
  revoked: async (stage) => {
    const { session: issuance } = await createOffer(stage, {});
    await stage.issuer.admin.post('/session/revoke', { sessionId: issuance, status: 1 });
    const { answer, session } = await present(stage, isStrict(stage.tenant.profile) ? 'back' : 'sealed');
    assert.equal(answer.isAccepted, false, 'the verifier takes a revoked credential');
    const { status, failure } = await readSession(stage, session);
    assert.equal(status, 'failed');
    assert.match(failure?.message ?? '', /status_revoked/);
  },
};

type OrderOptions = Partial<Pick<CredentialOfferInput, 'grant' | 'txCode' | 'batch'>>;

async function issue(stage: Stage, orderOptions: OrderOptions, issued: IssuedKind['issued'] = 'at-once'): Promise<void> {
  const { session, copies } = await createOffer(stage, orderOptions, issued);
  assert(copies > 0, 'the wallet received nothing');
  const { status } = await stage.issuer.admin.get<Session>(`/session/${session}`);
  assert.equal(status, 'completed');
}

/** @returns what the wallet has received, and the session of the offer. */
async function createOffer(
  stage: Stage,
  orderOptions: OrderOptions,
  issued: IssuedKind['issued'] = 'at-once',
): Promise<{ session: string; copies: number }> {
  const { uri, session } = await offer(stage, issued, orderOptions);
  const copies = await stage.wallet.accept({ grant: 'pre_authorized_code', ...orderOptions, offer: uri });
  return { session, copies };
}

function offer(
  { issuer, format }: Stage,
  issued: IssuedKind['issued'],
  { grant = 'pre_authorized_code', txCode }: OrderOptions,
): Promise<{ uri: string; session: string }> {
  return issuer.admin.post('/issuer/offer', {
    ...{ response_type: 'uri', flow: grant, ...(txCode !== undefined && { tx_code: txCode }) },
    credentialConfigurationIds: [configurationId({ issued, format })],
  });
}

async function deferred(stage: Stage): Promise<void> {
  const { admin } = stage.tenant;
  const { uri, session } = await offer(stage, 'later', {});
  // Some wallets wait, others retry.
  const accepting = stage.wallet.accept({ offer: uri, grant: 'pre_authorized_code' });
  accepting.catch(() => undefined);
  const transactionId = await promised(stage, session, accepting);
  await admin.post(`/issuer/deferred/${transactionId}/complete`, { claims: CLAIMS[stage.format] });
  const copies = (await accepting) || (await stage.wallet.collect());
  assert(copies > 0, 'what was promised did not come');
  assert.equal((await readSession(stage, session)).status, 'completed');
}

async function promised({ tenant }: Stage, session: string, accepting: Promise<unknown>): Promise<string> {
  for (let tries = 0; tries < 100; tries++) {
    const deferredTransactions = await tenant.admin.get<{ transactionId: string }[]>(`/issuer/deferred?session=${session}`);
    if (deferredTransactions[0] !== undefined) return deferredTransactions[0].transactionId;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await accepting;
  throw new Error('the wallet requested no credential');
}

async function present(stage: Stage, queryId: string): Promise<{ answer: Answer; session: string }> {
  const requestId = queryIdOf(stage.format, queryId);
  const body = { response_type: 'uri', requestId };
  const createdRequest = await stage.tenant.admin.post<{ uri: string; crossDeviceUri?: string; session: string }>('/verifier/offer', body);
  const answer = await stage.wallet.present(
    queryId === 'back' || queryId === 'posted' ? createdRequest.uri : (createdRequest.crossDeviceUri ?? createdRequest.uri),
  );
  return { answer, session: createdRequest.session };
}

async function presentedAndBack(stage: Stage, queryId: string): Promise<void> {
  await issue(stage, {});
  const { answer, session } = await present(stage, queryId);
  assert.match(answer.redirectUri ?? '', /^https:\/\/shop\.example\/done\?response_code=/);
  const code = new URL(answer.redirectUri ?? '').searchParams.get('response_code') ?? '';
  await expectStatus(stage, session, `?response_code=${encodeURIComponent(code)}`);
}

async function expectPresented(stage: Stage, queryId: string): Promise<void> {
  await issue(stage, {});
  const { answer, session } = await present(stage, queryId);
  assert(answer.isAccepted, 'the verifier refuses it');
  await expectStatus(stage, session);
}

async function presentedToPage(stage: Stage, queryId: string): Promise<void> {
  await issue(stage, {});
  const requestId = queryIdOf(stage.format, queryId);
  const body = { response_type: 'dc-api', requestId, origin: PAGE };
  const createdRequest = await stage.tenant.admin.post<{ uri: string; dcApi: PageRequest; session: string }>('/verifier/offer', body);
  const data = await stage.wallet.presentToPage(createdRequest.dcApi, PAGE);
  const answer = await fetch(createdRequest.uri, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(data),
  });
  assert.equal(answer.status, 200, await answer.text());
  await expectStatus(stage, createdRequest.session);
}

/** Expects exactly the requested credentials. */
async function expectStatus(stage: Stage, id: string, query = ''): Promise<void> {
  const { status, credentials, failure } = await readSession(stage, id, query);
  assert.equal(status, 'completed', failure?.message ?? `the session is ${status}`);
  assert.deepEqual(credentials?.[0]?.values, SHOWN[stage.format]);
}

function readSession({ tenant }: Stage, id: string, query = ''): Promise<Session> {
  return tenant.admin.get<Session>(`/session/${id}${query}`);
}
