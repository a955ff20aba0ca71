import { assertMayUse } from '../../domain/clients/client.ts';
import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { authorizationServers, defaultOfferServer } from '../../domain/issuance/issuance-configuration.ts';
import { assertOfferRequest, composeOffer, type OfferContext, type OfferRequest, offerLink } from '../../domain/issuance/offer.ts';
import type { NewGrant } from '../../domain/oauth/grant.ts';
import type { RequestIdentity } from '../../domain/sessions/idempotent-response.ts';
import type { IssuanceRequest, Session } from '../../domain/sessions/session.ts';
import { defined } from '../../domain/shared/defined.ts';
import { invalidInput } from '../../domain/shared/failure.ts';
import { type Finding, type Warning, warningsOf } from '../../domain/shared/finding.ts';
import type { PublicId, SessionId } from '../../domain/shared/ids.ts';
import { findInvocationProblems, MAX_QR_LENGTH } from '../../domain/shared/invocation-uri.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { CachedCaller, TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { hashCode, hashTxCode } from '../oauth/pre-authorized-code-grant.ts';
import { Random } from '../ports/random.ts';
import { SchemaValidator } from '../ports/schema-validator.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Webhooks } from '../ports/webhooks.ts';
import { type PrepareStorage, withIdempotencyKey } from '../sessions/idempotency-key.ts';
import { newSession, referenceEntry, sessionSeconds } from '../sessions/new-session.ts';
import { offerPageUrl } from '../sessions/offer-pages.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { attemptFor } from '../transactions/attempt.ts';
import { type TenantTransaction, TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { assertCallable } from '../webhooks/called-addresses.ts';
import { configuredSource, findClaimProblems } from './collect-claims.ts';
import { assertMayReceivePresentations } from './credential-rights.ts';

export type CreatedOffer = {
  readonly uri: string;
  readonly session: SessionId;
  readonly crossDeviceUri: string;
  readonly pageUrl?: string;
  /** Experimental: no specification defines offers over the Digital Credentials API yet. */
  readonly dcApi?: { readonly protocol: string; readonly data: JsonObject };
  readonly warnings?: readonly Warning[];
};

/** Protocol name for `navigator.credentials.create`; not standardized yet. */
const DC_API_PROTOCOL = 'openid4vci-v1';

/** Offers credentials to a wallet: a session, a single-use code and a link (OpenID4VCI 1.0 section 4.1). */
export class CreateOffer extends needs({
  ...TRANSACTION_PORTS,
  random: Random,
  settings: ServiceSettings,
  schemaValidator: SchemaValidator,
  webhooks: Webhooks,
}) {
  /**
   * @param name idempotency key of the request.
   * @throws Failure `forbidden` outside the client's configurations, `invalid_input` with the path of the fault,
   *   `conflict` if the key was used for another request.
   */
  execute(caller: CachedCaller, request: OfferRequest, name?: RequestIdentity): Promise<CreatedOffer> {
    return attemptFor(this.ports, caller, async (transaction, currentCaller) => {
      assertMayUse(currentCaller.allowedIssuanceConfigs, request.credentialConfigurationIds);
      return withIdempotencyKey<CreatedOffer>(transaction, name, (prepareStorage) =>
        this.#offer(transaction, currentCaller, request, prepareStorage),
      );
    });
  }

  async #offer(
    transaction: TenantTransaction,
    caller: TenantCaller,
    requestedOffer: OfferRequest,
    prepareStorage: PrepareStorage<CreatedOffer>,
  ): Promise<CreatedOffer> {
    const { random, settings } = this.ports;
    const { tenant, tenantId, now } = transaction;
    const { issuer } = tenant;
    const context = await this.#context(tenant);
    assertOfferRequest(requestedOffer, context);
    const request = await withServer(tenant, context, requestedOffer);
    assertCallable(this.ports.webhooks, tenantId, addressesOf(request));
    for (const [id, { type }] of Object.entries(request.credentialClaims ?? {})) {
      const { iaeActions } = (await tenant.credentialConfiguration(id)) ?? {};
      if (type === 'webhook') assertMayReceivePresentations(caller, iaeActions, `credentialClaims.${id}.webhook`);
    }
    await this.#checkInlineClaims(tenant, request);
    await this.#checkConfiguredClaims(tenant, request);

    const lifetime = await sessionSeconds(tenant, settings);
    const expiresAt = new Date(now.getTime() + Math.min(request.expiresIn ?? lifetime, lifetime) * 1000);
    const publicId = random.token() as PublicId;
    const code = request.flow === 'pre_authorized_code' ? random.token(256) : undefined;
    const codeFields = code === undefined ? { issuerState: publicId } : { preAuthorizedCode: code };
    const offer = composeOffer(issuer, request, codeFields, context.servers);
    const uri = offerLink(`${issuer}/credential-offer/${publicId}`, request.invocationUri);
    const session = newSession(random, {
      tenantId,
      publicId,
      kind: 'issuance',
      createdAt: now,
      expiresAt,
      configurationIds: request.credentialConfigurationIds,
      useDcApi: request.response_type === 'dc-api',
      request: issuanceRequest(request, offer, uri),
    });
    const grant = code === undefined ? undefined : this.#grant(request, session, code);
    const findings = [...findInvocationProblems('invocationUri', request.invocationUri), ...findLengthProblems(uri)];
    const warnings = warningsOf(findings, tenant.profile);
    const created = {
      uri,
      session: session.id,
      crossDeviceUri: uri,
      ...(session.useDcApi ? { dcApi: { protocol: DC_API_PROTOCOL, data: offer } } : { pageUrl: offerPageUrl(settings, tenant, publicId) }),
      ...(warnings.length > 0 && { warnings }),
    };
    const { change, refusals: failures } = prepareStorage(created);
    const opens = { session, ...defined({ grant }) };
    await transaction.commit({ opens, ...referenceEntry(session, request.reference), ...change }, failures);
    return created;
  }

  #grant(request: OfferRequest, session: Session, code: string): NewGrant {
    const { random, settings } = this.ports;
    return {
      id: random.token(),
      kind: 'pre_authorized_code',
      server: 'built-in',
      authorization: null,
      sessionId: session.id,
      publicId: session.publicId,
      codeHash: hashCode(code),
      txCodeHash: request.tx_code === undefined ? null : (hashTxCode(settings, request.tx_code)[0] ?? null),
      credentialConfigurationIds: request.credentialConfigurationIds,
      expiresAt: session.expiresAt,
    };
  }

  #context(tenant: TenantConfiguration): Promise<OfferContext> {
    return tenant.derive('offers/context', async () => {
      const { issuer } = tenant;
      const configurations = await tenant.credentialConfigurations();
      const configurationsById = new Map(configurations.map(({ id, iaeActions }) => [id, { interactive: (iaeActions?.length ?? 0) > 0 }]));
      return { configurations: configurationsById, servers: authorizationServers(issuer, await tenant.issuance()), issuer };
    });
  }

  /** Rejects claims that could never be issued now, where the backend sees the problem, and not at the wallet. */
  async #checkInlineClaims(tenant: TenantConfiguration, request: OfferRequest): Promise<void> {
    for (const [id, source] of Object.entries(request.credentialClaims ?? {})) {
      if (source.type !== 'inline') continue;
      const { claims } = source;
      const configuration = await tenant.credentialConfiguration(id);
      if (configuration === undefined) continue;
      const [fault] = await findClaimProblems(this.ports, { tenant, configuration, claims });
      if (fault !== undefined) throw invalidInput(`credentialClaims.${id}.claims${fault.path}`, fault.message);
    }
  }

  /** The same check for credentials that are offered without claims. */
  async #checkConfiguredClaims(
    tenant: TenantConfiguration,
    { credentialConfigurationIds, credentialClaims = {} }: OfferRequest,
  ): Promise<void> {
    for (const [index, id] of credentialConfigurationIds.entries()) {
      if (Object.hasOwn(credentialClaims, id)) continue;
      const fault = await tenant.derive(`offers/own-claims/${id}`, () => this.#configuredClaimsFault(tenant, id));
      if (fault !== undefined) throw invalidInput(`credentialConfigurationIds.${index}`, fault);
    }
  }

  async #configuredClaimsFault(tenant: TenantConfiguration, id: string): Promise<string | undefined> {
    const configuration = await tenant.credentialConfiguration(id);
    if (configuration === undefined) return undefined;
    const source = configuredSource(configuration);
    if (source.type !== 'inline') return undefined;
    const { claims } = source;
    const [fault] = await findClaimProblems(this.ports, { tenant, configuration, claims });
    if (fault === undefined) return undefined;
    const problem = fault.path === '' ? fault.message : `claims${fault.path} ${fault.message}`;
    return `${id} cannot be issued: ${problem}; claims come from ${sourcesOf(configuration)}`;
  }
}

/**
 * Adds the authorization server to the offer if there are several: the built-in server, which does not authenticate users, must not
 * replace the one where the user logs in.
 */
async function withServer(
  tenant: TenantConfiguration,
  { configurations, servers, issuer }: OfferContext,
  request: OfferRequest,
): Promise<OfferRequest> {
  const { flow, authorization_server: requestedServer, credentialConfigurationIds: ids } = request;
  if (flow !== 'authorization_code' || requestedServer !== undefined || servers.length < 2) return request;
  const isInteractive = ids.some((id) => configurations.get(id)?.interactive === true);
  const issuance = await tenant.issuance();
  return { ...request, authorization_server: defaultOfferServer(issuer, issuance, isInteractive) };
}

function sourcesOf({ id, config }: CredentialConfiguration): string {
  const elements = config.format === 'mso_mdoc' ? ', config.claimsByNamespace' : '';
  return `credentialClaims.${id} of the offer, or from claimsWebhook, claims${elements} of its configuration`;
}

function addressesOf({ credentialClaims = {}, notifyWebhook }: OfferRequest) {
  const sources = Object.entries(credentialClaims).map(([id, source]) => ({
    path: `credentialClaims.${id}.webhook.url`,
    url: source.type === 'webhook' ? source.webhook.url : undefined,
  }));
  return [...sources, { path: 'notifyWebhook.url', url: notifyWebhook?.url }];
}

function issuanceRequest(request: OfferRequest, offer: JsonObject, offerUrl: string): IssuanceRequest {
  const { tx_code: _secret, credentialClaims = {}, notifyWebhook, ...offerRequest } = request;
  return {
    kind: 'issuance',
    offerRequest: offerRequest as unknown as JsonObject,
    offer,
    offerUrl,
    credentialClaims: credentialClaims as IssuanceRequest['credentialClaims'],
    ...defined({ notifyWebhook }),
  };
}

/** An offer is passed by reference, so only the address of a wallet can make its link too long. */
function findLengthProblems(link: string): Finding[] {
  if (link.length <= MAX_QR_LENGTH) return [];
  return [
    {
      rule: 'OpenID4VCI 1.0 section 4.1',
      member: 'invocationUri',
      concerns: 'users whose wallet is on another device than the browser',
      message: `the link has ${link.length} characters; above ${MAX_QR_LENGTH} cameras cannot scan its QR code, and the page shows none`,
      change: 'use a shorter address',
    },
  ];
}
