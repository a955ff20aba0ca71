// A second independent wallet (Credo), installed apart from the service (`npm ci` in this folder). It runs as a process of
// its own: each line that comes in is a JSON object ({ offer, flow, anchors, requests }) for a new wallet, and one line
// goes out for it ({ credentials, presented } or { error }). It checks what it receives: signature, certificate path to the
// given anchors, key binding. `wallet` names a wallet that later lines go on with; `txCode`, `batch` (keys of each
// credential) and `renew` (by the refresh token, without an offer) say how to collect, and `provider` ({ clientId, key,
// certificate }) who attests the wallet. Each request is a link, or the data of a Digital Credentials API request with the
// origin of its page.
import { randomUUID, sign } from 'node:crypto';
import { createInterface } from 'node:readline';
import {
  Agent,
  ConsoleLogger,
  InjectionSymbols,
  Kms,
  LogLevel,
  MdocRecord,
  RecordDuplicateError,
  RecordNotFoundError,
  X509Module,
} from '@credo-ts/core';
import { agentDependencies, NodeInMemoryKeyManagementStorage, NodeKeyManagementService } from '@credo-ts/node';
import { OpenId4VcModule } from '@credo-ts/openid4vc';

/** Prefix of result lines; libraries may write other lines. */
const ANSWER = 'answer ';
const CLIENT_ID = 'https://wallet.example.net';

/** Records by type and id; nothing outlives the process. */
class MemoryStorage {
  supportsCursorPagination = false;
  #records = new Map();

  #place = (type, id) => `${type} ${id}`;

  async save(_context, record) {
    const place = this.#place(record.type, record.id);
    if (this.#records.has(place)) throw new RecordDuplicateError(record.id, { recordType: record.type });
    this.#records.set(place, record);
  }

  async update(_context, record) {
    this.#records.set(this.#place(record.type, record.id), record);
  }

  async delete(_context, record) {
    this.#records.delete(this.#place(record.type, record.id));
  }

  async deleteById(_context, { type }, id) {
    this.#records.delete(this.#place(type, id));
  }

  async getById(_context, { type }, id) {
    const record = this.#records.get(this.#place(type, id));
    if (record === undefined) throw new RecordNotFoundError(id, { recordType: type });
    return record;
  }

  async updateByIdWithLock(context, recordClass, id, change) {
    const next = await change(await this.getById(context, recordClass, id));
    await this.update(context, next);
    return next;
  }

  supportsLocking() {
    return false;
  }

  async getAll(_context, { type }) {
    return [...this.#records.values()].filter((record) => record.type === type);
  }

  async findByQuery(context, recordClass) {
    return this.getAll(context, recordClass);
  }
}

/**
 * Its release takes a `notification_id` for a fault where deferred credentials come, which is where OpenID4VCI 1.0 section
 * 9.2 has it. Behind this it does not see it.
 */
async function unnotified(input, init) {
  const answer = await fetch(input, init);
  if (answer.status !== 200 || !String(input).endsWith('/deferred_credential')) return answer;
  const { notification_id: _unseen, ...body } = await answer.json();
  return new Response(JSON.stringify(body), { status: 200, headers: answer.headers });
}

async function startAgent(anchors) {
  const kms = new NodeKeyManagementService(new NodeInMemoryKeyManagementStorage());
  const agent = new Agent({
    config: { allowInsecureHttpUrls: true, autoUpdateStorageOnStartup: true, logger: new ConsoleLogger(LogLevel.off) },
    dependencies: { ...agentDependencies, fetch: unnotified },
    modules: {
      openid4vc: new OpenId4VcModule(),
      keys: new Kms.KeyManagementModule({ backends: [kms], defaultBackend: kms.backend }),
      x509: new X509Module({ trustedCertificates: anchors }),
      storage: { register: (container) => container.registerInstance(InjectionSymbols.StorageService, new MemoryStorage()) },
    },
  });
  await agent.initialize();
  return agent;
}

/** The user who opens the page and approves. */
async function approve(authorizationUrl) {
  const plain = (html) => html.replaceAll(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)));
  const html = await (await fetch(authorizationUrl, { redirect: 'manual' })).text();
  const fields = [...html.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)">/g)];
  const form = new URLSearchParams(fields.map(([, name, value]) => [name, plain(value)]));
  form.set('decision', 'approve');
  const action = plain(/<form [^>]*action="([^"]+)"/.exec(html)[1]);
  const answer = await fetch(action, { method: 'POST', body: form, redirect: 'manual' });
  return answer.headers.get('location');
}

/** The attestation of this wallet by its provider, for one of its keys. */
async function attestation(agent, { clientId, key, certificate }) {
  const { publicJwk } = await agent.kms.createKey({ type: { kty: 'EC', crv: 'P-256' } });
  const iat = Math.floor(Date.now() / 1000);
  const header = { alg: 'ES256', typ: 'oauth-client-attestation+jwt', x5c: [certificate] };
  const cnf = { jwk: publicJwk };
  const payload = { iss: clientId, sub: clientId, iat, exp: iat + 3600, jti: randomUUID(), cnf };
  const parts = [header, payload].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'));
  const toSign = Buffer.from(parts.join('.'));
  const signature = sign('sha256', toSign, { key, format: 'jwk', dsaEncoding: 'ieee-p1363' });
  return [...parts, signature.toString('base64url')].join('.');
}

async function tokenFor(agent, resolved, { flow, txCode, provider }) {
  const holder = agent.openid4vc.holder;
  const clientId = provider?.clientId ?? CLIENT_ID;
  const walletAttestationJwt = provider && (await attestation(agent, provider));
  if (flow === 'pre_authorized_code') return holder.requestToken({ resolvedCredentialOffer: resolved, txCode, walletAttestationJwt });
  const request = await holder.resolveOpenId4VciAuthorizationRequest(resolved, {
    clientId,
    redirectUri: `${clientId}/callback`,
    scope: Object.values(resolved.offeredCredentialConfigurations).map(({ scope }) => scope),
    walletAttestationJwt,
  });
  const location = await approve(request.authorizationRequestUrl);
  const code = new URL(location).searchParams.get('code');
  return holder.requestToken({
    resolvedCredentialOffer: resolved,
    code,
    clientId,
    redirectUri: `${clientId}/callback`,
    codeVerifier: request.codeVerifier,
    walletAttestationJwt,
    ...(request.dpop === undefined ? {} : { dpop: request.dpop }),
  });
}

/** Data for a repeated request of a credential. */
const renewable = new WeakMap();

async function receive(order, agent) {
  const { offer, flow, batch = 1 } = order;
  const holder = agent.openid4vc.holder;
  const { resolved, token } = order.renew
    ? await renewed(agent)
    : await holder.resolveCredentialOffer(offer).then(async (found) => ({ resolved: found, token: await tokenFor(agent, found, order) }));
  renewable.set(agent, { resolved, token, flow });
  const credentials = [];
  // One by one, since it fetches a nonce only for the first of several.
  for (const id of resolved.credentialOfferPayload.credential_configuration_ids) {
    const answer = await holder.requestCredentials({
      resolvedCredentialOffer: resolved,
      ...token,
      credentialConfigurationIds: [id],
      clientId: flow === 'authorization_code' ? CLIENT_ID : undefined,
      credentialBindingResolver: async () => ({
        method: 'jwk',
        keys: await Promise.all(Array.from({ length: batch }, () => newKey(agent))),
      }),
    });
    credentials.push(...answer.credentials);
    for (const deferred of answer.deferredCredentials) {
      credentials.push(...(await fetchPromised(agent, { resolved, token, deferred })));
    }
  }
  for (const { record, notificationId } of credentials) {
    await (record instanceof MdocRecord ? agent.mdoc : agent.sdJwtVc).store({ record });
    if (notificationId === undefined) continue;
    const { accessToken, dpop } = token;
    const told = { metadata: resolved.metadata, notificationId, accessToken, dpop };
    await holder.sendNotification({ ...told, notificationEvent: 'credential_accepted' });
  }
  return credentials.map(({ record, credentialConfigurationId, notificationId }) => ({
    configurationId: credentialConfigurationId,
    format: record instanceof MdocRecord ? 'mso_mdoc' : 'dc+sd-jwt',
    notified: notificationId !== undefined,
    copies: record.credentialInstances?.length ?? 1,
    claims: claimsOf(record),
  }));
}

async function newKey(agent) {
  const { keyId, publicJwk } = await agent.kms.createKey({ type: { kty: 'EC', crv: 'P-256' } });
  const jwk = Kms.PublicJwk.fromPublicJwk(publicJwk);
  jwk.keyId = keyId;
  return jwk;
}

/** @returns what was resolved for the last offer, with a new access token. */
async function renewed(agent) {
  const { resolved, token, flow } = renewable.get(agent);
  const { refreshToken, ...answer } = await agent.openid4vc.holder.refreshToken({
    refreshToken: token.refreshToken,
    issuerMetadata: resolved.metadata,
    dpop: token.dpop,
    clientId: flow === 'authorization_code' ? CLIENT_ID : undefined,
  });
  return { resolved, token: { ...token, ...answer } };
}

/** Polls until the issuer has the deferred credential, more often than the interval asks. */
async function fetchPromised(agent, { resolved, token, deferred }) {
  for (let tries = 0; tries < 50; tries++) {
    const { credentials } = await agent.openid4vc.holder.requestDeferredCredentials({
      issuerMetadata: resolved.metadata,
      ...token,
      ...deferred,
    });
    if (credentials.length > 0) return credentials;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error('the deferred credential was not issued');
}

function claimsOf(record) {
  const first = record.firstCredential ?? record.credential;
  return first?.issuerSignedNamespaces ?? first?.prettyClaims;
}

/** Answers with whatever fits. @returns what the verifier said, or what the page gets in its place */
async function present(agent, { request, origin }) {
  const holder = agent.openid4vc.holder;
  const resolved = await holder.resolveOpenId4VpAuthorizationRequest(request, { origin });
  const { queryResult } = resolved.dcql;
  if (!queryResult.can_be_satisfied) throw new Error('no credential matches the query');
  const answer = await holder.acceptOpenId4VpAuthorizationRequest({
    authorizationRequestPayload: resolved.authorizationRequestPayload,
    dcql: { credentials: holder.selectCredentialsForDcqlRequest(queryResult) },
    transactionData: resolved.transactionData?.map(({ matchedCredentialIds: [credentialId] }) => ({ credentialId })),
    origin,
  });
  const { serverResponse, authorizationResponse } = answer;
  return serverResponse === undefined ? { data: authorizationResponse } : serverResponse;
}

const wallets = new Map();

async function agentOf({ wallet, anchors }) {
  const agent = wallets.get(wallet) ?? (await startAgent(anchors));
  if (wallet !== undefined) wallets.set(wallet, agent);
  return agent;
}

async function serve(order) {
  const agent = await agentOf(order);
  const collects = order.offer !== undefined || order.renew;
  const credentials = collects ? await receive(order, agent) : [];
  const presented = [];
  for (const request of order.requests ?? []) presented.push(await present(agent, request));
  return { credentials, presented };
}

// Sequentially, since issuance and presentation are steps of one wallet.
for await (const line of createInterface({ input: process.stdin })) {
  const result = await serve(JSON.parse(line)).catch((error) => ({
    error: `${error?.message ?? error} ${error?.cause?.message ?? ''} ${error?.stack}`,
  }));
  process.stdout.write(`${ANSWER}${JSON.stringify(result)}\n`);
}
process.exit(0);
