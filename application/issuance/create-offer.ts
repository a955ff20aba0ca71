import { assertMayUse } from '../../domain/clients/client.ts';
import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { authorizationServers, serverOfOffers } from '../../domain/issuance/issuance-configuration.ts';
import { assertOfferRequest, composeOffer, type OfferContext, type OfferRequest, offerLink } from '../../domain/issuance/offer.ts';
import type { NewGrant } from '../../domain/oauth/grant.ts';
import type { AnswerName } from '../../domain/sessions/kept-answer.ts';
import type { IssuanceRequest, Session } from '../../domain/sessions/session.ts';
import { defined } from '../../domain/shared/defined.ts';
import { invalidInput } from '../../domain/shared/failure.ts';
import { type Finding, type Warning, warningsOf } from '../../domain/shared/finding.ts';
import type { PublicId, SessionId } from '../../domain/shared/ids.ts';
import { findInvocationProblems, MAX_QR_LENGTH } from '../../domain/shared/invocation-uri.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { RememberedCaller, TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { hashCode, hashTxCode } from '../oauth/pre-authorized-code-grant.ts';
import { Random } from '../ports/random.ts';
import { SchemaValidator } from '../ports/schema-validator.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Webhooks } from '../ports/webhooks.ts';
import { answerOnce, type Keeping } from '../sessions/answer-once.ts';
import { newSession, referredTo, sessionSeconds } from '../sessions/new-session.ts';
import { offerPageUrl } from '../sessions/offer-pages.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { attemptFor } from '../transactions/attempt.ts';
import { type Known, WORLD } from '../transactions/known.ts';
import { assertCallable } from '../webhooks/called-addresses.ts';
import { findClaimProblems, ownSource } from './collect-claims.ts';
import { assertMayHear } from './credential-rights.ts';

export type CreatedOffer = {
  readonly uri: string;
  readonly session: SessionId;
  readonly crossDeviceUri: string;
  /** A page with the same, unless a page of somebody else has the offer. */
  readonly pageUrl?: string;
  /** Experimental: no specification defines offers over the Digital Credentials API yet. */
  readonly dcApi?: { readonly protocol: string; readonly data: JsonObject };
  /** Absent where there is nothing to warn of. */
  readonly warnings?: readonly Warning[];
};

/** What a page passes to `navigator.credentials.create` as the protocol; browsers have not agreed on it. */
const DC_API_PROTOCOL = 'openid4vci-v1';

/** Offers credentials to a wallet: a session, a single-use code and a link (OpenID4VCI 1.0 section 4.1). */
export class CreateOffer extends needs({
  ...WORLD,
  random: Random,
  settings: ServiceSettings,
  schemaValidator: SchemaValidator,
  webhooks: Webhooks,
}) {
  /**
   * @param name of the answer, where the client wants to be able to ask again.
   * @throws Failure `forbidden` outside the client's configurations, `invalid_input` with the path of the fault,
   *   `conflict` where the name was another request's.
   */
  execute(caller: RememberedCaller, request: OfferRequest, name?: AnswerName): Promise<CreatedOffer> {
    return attemptFor(this.ports, caller, async (known, present) => {
      assertMayUse(present.allowedIssuanceConfigs, request.credentialConfigurationIds);
      return answerOnce<CreatedOffer>(known, name, (keeping) => this.#offer(known, present, request, keeping));
    });
  }

  async #offer(known: Known, caller: TenantCaller, asked: OfferRequest, keeping: Keeping<CreatedOffer>): Promise<CreatedOffer> {
    const { random, settings } = this.ports;
    const { configured, tenantId, now } = known;
    const { issuer } = configured;
    const context = await this.#context(configured);
    assertOfferRequest(asked, context);
    const request = await withServer(configured, context, asked);
    assertCallable(this.ports.webhooks, tenantId, addressesOf(request));
    for (const [id, { type }] of Object.entries(request.credentialClaims ?? {})) {
      const { iaeActions } = (await configured.credentialConfiguration(id)) ?? {};
      if (type === 'webhook') assertMayHear(caller, iaeActions, `credentialClaims.${id}.webhook`);
    }
    await this.#checkInlineClaims(configured, request);
    await this.#checkOwnClaims(configured, request);

    const lifetime = await sessionSeconds(configured, settings);
    const expiresAt = new Date(now.getTime() + Math.min(request.expiresIn ?? lifetime, lifetime) * 1000);
    const publicId = random.token() as PublicId;
    const code = request.flow === 'pre_authorized_code' ? random.token(256) : undefined;
    const offered = code === undefined ? { issuerState: publicId } : { preAuthorizedCode: code };
    const offer = composeOffer(issuer, request, offered, context.servers);
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
    const warnings = warningsOf(findings, configured.profile);
    const created = {
      uri,
      session: session.id,
      crossDeviceUri: uri,
      ...(session.useDcApi
        ? { dcApi: { protocol: DC_API_PROTOCOL, data: offer } }
        : { pageUrl: offerPageUrl(settings, configured, publicId) }),
      ...(warnings.length > 0 && { warnings }),
    };
    const { change, refusals } = keeping(created);
    const opens = { session, ...defined({ grant }) };
    await known.commit({ opens, ...referredTo(session, request.reference), ...change }, refusals);
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

  #context(configured: TenantConfiguration): Promise<OfferContext> {
    return configured.derive('offers/context', async () => {
      const { issuer } = configured;
      const configurations = await configured.credentialConfigurations();
      const known = new Map(configurations.map(({ id, iaeActions }) => [id, { interactive: (iaeActions?.length ?? 0) > 0 }]));
      return { known, servers: authorizationServers(issuer, await configured.issuance()), issuer };
    });
  }

  /** Claims that could never be issued are refused now, where the backend sees it, and not at the wallet. */
  async #checkInlineClaims(configured: TenantConfiguration, request: OfferRequest): Promise<void> {
    for (const [id, source] of Object.entries(request.credentialClaims ?? {})) {
      if (source.type !== 'inline') continue;
      const { claims } = source;
      const configuration = await configured.credentialConfiguration(id);
      if (configuration === undefined) continue;
      const [fault] = await findClaimProblems(this.ports, { configured, configuration, claims });
      if (fault !== undefined) throw invalidInput(`credentialClaims.${id}.claims${fault.path}`, fault.message);
    }
  }

  /** The same for what is offered without claims: a wallet would come for what cannot be issued. */
  async #checkOwnClaims(
    configured: TenantConfiguration,
    { credentialConfigurationIds, credentialClaims = {} }: OfferRequest,
  ): Promise<void> {
    for (const [index, id] of credentialConfigurationIds.entries()) {
      if (Object.hasOwn(credentialClaims, id)) continue;
      const fault = await configured.derive(`offers/own-claims/${id}`, () => this.#ownFault(configured, id));
      if (fault !== undefined) throw invalidInput(`credentialConfigurationIds.${index}`, fault);
    }
  }

  async #ownFault(configured: TenantConfiguration, id: string): Promise<string | undefined> {
    const configuration = await configured.credentialConfiguration(id);
    if (configuration === undefined) return undefined;
    const source = ownSource(configuration);
    if (source.type !== 'inline') return undefined;
    const { claims } = source;
    const [fault] = await findClaimProblems(this.ports, { configured, configuration, claims });
    if (fault === undefined) return undefined;
    const what = fault.path === '' ? fault.message : `claims${fault.path} ${fault.message}`;
    return `${id} cannot be issued: ${what}; claims come from ${sourcesOf(configuration)}`;
  }
}

/**
 * Says for which server the offer is, where there are several: one that asks nobody who they are must not stand in for the
 * one where the user logs in.
 */
async function withServer(
  configured: TenantConfiguration,
  { known, servers, issuer }: OfferContext,
  request: OfferRequest,
): Promise<OfferRequest> {
  const { flow, authorization_server: named, credentialConfigurationIds: ids } = request;
  if (flow !== 'authorization_code' || named !== undefined || servers.length < 2) return request;
  const isInteractive = ids.some((id) => known.get(id)?.interactive === true);
  const issuance = await configured.issuance();
  return { ...request, authorization_server: serverOfOffers(issuer, issuance, isInteractive) };
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
  const { tx_code: _secret, credentialClaims = {}, notifyWebhook, ...rest } = request;
  return {
    kind: 'issuance',
    offerRequest: rest as unknown as JsonObject,
    offer,
    offerUrl,
    credentialClaims: credentialClaims as IssuanceRequest['credentialClaims'],
    ...defined({ notifyWebhook }),
  };
}

/** An offer is fetched by reference, so only the address of a wallet makes its link long. */
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
