import { assertMayUse } from '../../domain/clients/client.ts';
import type { RequestIdentity } from '../../domain/sessions/idempotent-response.ts';
import { publicIdOf } from '../../domain/sessions/session-search.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { PresentationConfiguration } from '../../domain/verification/configuration.ts';
import { dcApiRequests } from '../../domain/verification/dc-api.ts';
import { postedParameters, redirectUriClientId } from '../../domain/verification/request-object.ts';
import { isDcApi, type VerificationRequest } from '../../domain/verification/verification-request.ts';
import type { CachedCaller, TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { Encryption } from '../ports/encryption.ts';
import { Kms } from '../ports/kms.ts';
import { Random } from '../ports/random.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Webhooks } from '../ports/webhooks.ts';
import { RegistrationCertificates } from '../registrar/registration-certificates.ts';
import { type PrepareStorage, withIdempotencyKey } from '../sessions/idempotency-key.ts';
import { newSession, referenceEntry } from '../sessions/new-session.ts';
import { offerPageUrl } from '../sessions/offer-pages.ts';
import { attemptFor } from '../transactions/attempt.ts';
import { type TenantTransaction, TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { assertCallable } from '../webhooks/called-addresses.ts';
import { createDcApiRequest } from './dc-api-request.ts';
import { awaitsCode } from './haip.ts';
import { assertTransactionData, type PresentationRequestBody } from './presentation-request.ts';
import { policyToStore } from './presentation-rules.ts';
import { type CreatedRequest, infoOf, partsOf, type RequestContext, signerOf, signRequest } from './request-creation.ts';
import { requestNonce } from './request-parts.ts';
import { crossDeviceLink, walletLink } from './wallet-link.ts';

export type PresentationOffer = {
  readonly uri: string;
  readonly session: SessionId;
  /** The request for a QR code. Its response is not redirected to the application. Absent with `requireResponseCode: true`. */
  readonly crossDeviceUri?: string;
  /** A page with both links, under the same condition. */
  readonly pageUrl?: string;
  /** Argument of `navigator.credentials.get`. */
  readonly dcApi?: JsonObject;
};

/** Creates a presentation request and signs it at once, so that each fetch returns the same bytes. */
export class CreatePresentationRequest extends needs({
  ...TRANSACTION_PORTS,
  random: Random,
  kms: Kms,
  encryption: Encryption,
  settings: ServiceSettings,
  registrationCertificates: RegistrationCertificates,
  webhooks: Webhooks,
}) {
  /**
   * @param name idempotency key of the request.
   * @throws Failure `forbidden` outside the client's restriction, `not_found` for an unknown configuration,
   *   `invalid_input` when it cannot be created: no usable access key, transaction data for unknown queries, no origin.
   */
  execute(caller: CachedCaller, body: PresentationRequestBody, name?: RequestIdentity): Promise<PresentationOffer> {
    return attemptFor(this.ports, caller, async (transaction, currentCaller) => {
      assertMayUse(currentCaller.allowedPresentationConfigs, [body.requestId]);
      return withIdempotencyKey<PresentationOffer>(transaction, name, (prepareStorage) =>
        this.#request(transaction, currentCaller, body, prepareStorage),
      );
    });
  }

  async #request(
    transaction: TenantTransaction,
    caller: TenantCaller,
    body: PresentationRequestBody,
    prepareStorage: PrepareStorage<PresentationOffer>,
  ): Promise<PresentationOffer> {
    const { random, webhooks } = this.ports;
    const { tenant, tenantId, now } = transaction;
    const configuration = await tenant.presentationConfiguration(body.requestId);
    if (configuration === undefined) throw new Failure('not_found', `there is no presentation configuration "${body.requestId}"`);
    assertTransactionData(body, configuration);
    assertCallable(webhooks, tenantId, [{ path: 'webhook.url', url: body.webhook?.url }]);
    const expiresAt = new Date(now.getTime() + configuration.lifeTime * 1000);
    // OpenID4VP 1.0 section 13.3: values that the wallet sees must not lead to the session that the client polls.
    const nonce = requestNonce(random);
    const publicId = publicIdOf(nonce);
    const address = tenant.issuer;
    const isManager = caller.roles.includes('presentation:manage');
    const policy = await policyToStore(tenant, configuration);
    const times = { now, expiresAt };
    const context = { tenant, configuration, policy, body, nonce, publicId, ...times, address, isManager };
    const created = await (body.response_type === 'dc-api' ? createDcApiRequest(this.ports, context) : this.#createPosted(context));
    const { request } = created;
    const session = newSession(random, {
      tenantId,
      publicId,
      kind: 'verification',
      createdAt: now,
      expiresAt,
      request,
      configurationIds: [configuration.id],
      useDcApi: isDcApi(request),
    });
    const pageUrl = offerPageUrl(this.ports.settings, tenant, publicId);
    const offer = offerOf(session.id, configuration, created, pageUrl);
    const { change, refusals: failures } = prepareStorage(offer);
    await transaction.commit({ opens: { session }, ...referenceEntry(session, body.reference), ...change }, failures);
    return offer;
  }

  /** Creates a request that the wallet fetches, unless it is contained in the link, and whose response it posts. */
  async #createPosted(context: RequestContext): Promise<CreatedRequest> {
    const { tenant, configuration, body, publicId, address } = context;
    if (body.origin !== undefined) throw invalidInput('origin', 'Only requests with dc-api have an origin.');
    const { responseMode } = configuration;
    const responseUri = `${address}/response/${publicId}`;
    const redirectUri = body.redirectUri ?? configuration.redirectUri ?? undefined;
    const awaitsResponseCode = awaitsCode(tenant, configuration, redirectUri);
    const isUnsigned = configuration.clientIdPrefix === 'redirect_uri';
    const signer = isUnsigned ? undefined : await signerOf(this.ports, context);
    const clientId = signer === undefined ? redirectUriClientId(responseUri) : signer.clientId;
    const parts = partsOf(this.ports, context, `${address}/request/${publicId}`, responseMode);
    const state = this.ports.random.token();
    // A webhook may return the redirect address in its response.
    const mayRedirect = redirectUri !== undefined || parts.common.webhook !== undefined;
    // Another device cannot bring the code that such a configuration requires for each result. A profile requires it only on the
    // same device (HAIP 1.0 section 5.1).
    const hasTwoLinks = mayRedirect && configuration.requireResponseCode !== true;
    const base = parts.parameters(await infoOf(this.ports, context, signer));
    const parameters = postedParameters(base, { clientId, responseUri, state });
    const request: VerificationRequest = {
      ...parts.common,
      clientId,
      responseUri,
      state,
      ...defined({ redirectUri }),
      ...(awaitsResponseCode && { awaitsResponseCode }),
      ...(hasTwoLinks && { crossDeviceState: this.ports.random.token() }),
      ...(signer === undefined ? { parameters } : await signRequest(this.ports, signer, parameters, context)),
    };
    return { request, parameters };
  }
}

function offerOf(
  session: SessionId,
  configuration: PresentationConfiguration,
  { request }: CreatedRequest,
  pageUrl: string,
): PresentationOffer {
  if (isDcApi(request)) return { uri: request.requestUrl, session, dcApi: dcApiRequests(request) };
  const uri = walletLink(request, configuration);
  const crossDeviceUri = crossDeviceLink(request, configuration);
  return { uri, session, ...(crossDeviceUri !== undefined && { crossDeviceUri, pageUrl }) };
}
