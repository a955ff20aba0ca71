import { assertMayUse } from '../../domain/clients/client.ts';
import type { AnswerName } from '../../domain/sessions/kept-answer.ts';
import { publicIdOf } from '../../domain/sessions/session-search.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { PresentationConfiguration } from '../../domain/verification/configuration.ts';
import { dcApiRequests } from '../../domain/verification/dc-api.ts';
import { postedParameters, redirectUriClientId } from '../../domain/verification/request-object.ts';
import { isDcApi, type VerificationRequest } from '../../domain/verification/verification-request.ts';
import type { RememberedCaller, TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { Encryption } from '../ports/encryption.ts';
import { Kms } from '../ports/kms.ts';
import { Random } from '../ports/random.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Webhooks } from '../ports/webhooks.ts';
import { RegistrationCertificates } from '../registrar/registration-certificates.ts';
import { answerOnce, type Keeping } from '../sessions/answer-once.ts';
import { newSession, referredTo } from '../sessions/new-session.ts';
import { offerPageUrl } from '../sessions/offer-pages.ts';
import { attemptFor } from '../transactions/attempt.ts';
import { type Known, WORLD } from '../transactions/known.ts';
import { assertCallable } from '../webhooks/called-addresses.ts';
import { dcApiRequest } from './dc-api-request.ts';
import { awaitsCode } from './haip.ts';
import { assertTransactionData, type PresentationRequestBody } from './presentation-request.ts';
import { policyToKeep } from './presentation-rules.ts';
import { infoOf, type Made, type Making, partsOf, signed, signerOf } from './request-in-making.ts';
import { requestNonce } from './request-parts.ts';
import { crossDeviceLink, walletLink } from './wallet-link.ts';

export type PresentationOffer = {
  readonly uri: string;
  readonly session: SessionId;
  /** For a QR code: its response is not redirected to the application. Absent with `requireResponseCode: true`. */
  readonly crossDeviceUri?: string;
  /** A page with both links, under the same condition. */
  readonly pageUrl?: string;
  /** What a page passes to `navigator.credentials.get`. */
  readonly dcApi?: JsonObject;
};

/** Makes one presentation request and signs it at once, so that each fetch is answered with the same bytes. */
export class CreatePresentationRequest extends needs({
  ...WORLD,
  random: Random,
  kms: Kms,
  encryption: Encryption,
  settings: ServiceSettings,
  registrationCertificates: RegistrationCertificates,
  webhooks: Webhooks,
}) {
  /**
   * @param name of the answer, where the client wants to be able to ask again.
   * @throws Failure `forbidden` outside the client's restriction, `not_found` for an unknown configuration,
   *   `invalid_input` when it cannot be made: no usable access key, transaction data for unknown queries, no origin.
   */
  execute(caller: RememberedCaller, body: PresentationRequestBody, name?: AnswerName): Promise<PresentationOffer> {
    return attemptFor(this.ports, caller, async (known, present) => {
      assertMayUse(present.allowedPresentationConfigs, [body.requestId]);
      return answerOnce<PresentationOffer>(known, name, (keeping) => this.#request(known, present, body, keeping));
    });
  }

  async #request(
    known: Known,
    caller: TenantCaller,
    body: PresentationRequestBody,
    keeping: Keeping<PresentationOffer>,
  ): Promise<PresentationOffer> {
    const { random, webhooks } = this.ports;
    const { configured, tenantId, now } = known;
    const configuration = await configured.presentationConfiguration(body.requestId);
    if (configuration === undefined) throw new Failure('not_found', `there is no presentation configuration "${body.requestId}"`);
    assertTransactionData(body, configuration);
    assertCallable(webhooks, tenantId, [{ path: 'webhook.url', url: body.webhook?.url }]);
    const expiresAt = new Date(now.getTime() + configuration.lifeTime * 1000);
    // OpenID4VP 1.0 section 13.3: what the wallet sees never leads to what the client polls.
    const nonce = requestNonce(random);
    const publicId = publicIdOf(nonce);
    const address = configured.issuer;
    const isManager = caller.roles.includes('presentation:manage');
    const policy = await policyToKeep(configured, configuration);
    const times = { now, expiresAt };
    const making = { configured, configuration, policy, body, nonce, publicId, ...times, address, isManager };
    const made = await (body.response_type === 'dc-api' ? dcApiRequest(this.ports, making) : this.#posted(making));
    const { request } = made;
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
    const pageUrl = offerPageUrl(this.ports.settings, configured, publicId);
    const offer = offerOf(session.id, configuration, made, pageUrl);
    const { change, refusals } = keeping(offer);
    await known.commit({ opens: { session }, ...referredTo(session, body.reference), ...change }, refusals);
    return offer;
  }

  /** The wallet fetches the request, unless it stands in the address, and posts its answer. */
  async #posted(making: Making): Promise<Made> {
    const { configured, configuration, body, publicId, address } = making;
    if (body.origin !== undefined) throw invalidInput('origin', 'Only requests with dc-api have an origin.');
    const { responseMode } = configuration;
    const responseUri = `${address}/response/${publicId}`;
    const redirectUri = body.redirectUri ?? configuration.redirectUri ?? undefined;
    const awaitsResponseCode = awaitsCode(configured, configuration, redirectUri);
    const isUnsigned = configuration.clientIdPrefix === 'redirect_uri';
    const signer = isUnsigned ? undefined : await signerOf(this.ports, making);
    const clientId = signer === undefined ? redirectUriClientId(responseUri) : signer.clientId;
    const parts = partsOf(this.ports, making, `${address}/request/${publicId}`, responseMode);
    const state = this.ports.random.token();
    // A webhook may name the address of the redirect in its response.
    const mayRedirect = redirectUri !== undefined || parts.common.webhook !== undefined;
    // Another device cannot bring the code that such a configuration demands of each result. A profile demands it of the
    // same device alone (HAIP 1.0 section 5.1).
    const hasTwoLinks = mayRedirect && configuration.requireResponseCode !== true;
    const base = parts.parameters(await infoOf(this.ports, making, signer));
    const parameters = postedParameters(base, { clientId, responseUri, state });
    const request: VerificationRequest = {
      ...parts.common,
      clientId,
      responseUri,
      state,
      ...defined({ redirectUri }),
      ...(awaitsResponseCode && { awaitsResponseCode }),
      ...(hasTwoLinks && { crossDeviceState: this.ports.random.token() }),
      ...(signer === undefined ? { parameters } : await signed(this.ports, signer, parameters, making)),
    };
    return { request, parameters };
  }
}

function offerOf(session: SessionId, configuration: PresentationConfiguration, { request }: Made, pageUrl: string): PresentationOffer {
  if (isDcApi(request)) return { uri: request.requestUrl, session, dcApi: dcApiRequests(request) };
  const uri = walletLink(request, configuration);
  const crossDeviceUri = crossDeviceLink(request, configuration);
  return { uri, session, ...(crossDeviceUri !== undefined && { crossDeviceUri, pageUrl }) };
}
