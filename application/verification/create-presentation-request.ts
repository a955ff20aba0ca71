import { z } from 'zod';
import { assertMayUse } from '../../domain/clients/client.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import { isDcApi, type Session, type VerificationRequest } from '../../domain/sessions/session.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { PublicId, SessionId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import {
  type PresentationConfiguration,
  RedirectUri,
  TransactionData,
} from '../../domain/verification/configuration.ts';
import { dcApiRequests } from '../../domain/verification/dc-api.ts';
import {
  encodeTransactionData,
  invocationUri,
  postedParameters,
  REQUEST_OBJECT_TYPE,
  redirectUriClientId,
  requestObjectClaims,
  requestParameters,
} from '../../domain/verification/request-object.ts';
import { transactionDataFaults } from '../../domain/verification/transaction-data-faults.ts';
import { maskWebhook } from '../../domain/webhooks/mask-webhook.ts';
import { WebhookConfig } from '../../domain/webhooks/webhook.ts';
import { attemptFor, type Known, WORLD } from '../attempt.ts';
import type { RememberedCaller, TenantCaller } from '../caller.ts';
import { signJwt } from '../keys/sign-jwt.ts';
import { needs } from '../needs.ts';
import { Encryption } from '../ports/encryption.ts';
import { Kms } from '../ports/kms.ts';
import { Random } from '../ports/random.ts';
import { issuerIdentifier, ServiceSettings } from '../ports/settings.ts';
import { Webhooks } from '../ports/webhooks.ts';
import { RegistrationCertificates } from '../registrar/registration-certificates.ts';
import type { TenantConfiguration } from '../tenant-configuration.ts';
import { assertCallable } from '../webhooks/called-addresses.ts';
import { accessIdentity, sanDnsClientId } from './access-chain.ts';

export const PresentationRequestBody = z
  .object({
    response_type: z
      .enum(['uri', 'dc-api'])
      .describe('uri: an address that starts a wallet; dc-api: a request for navigator.credentials.get'),
    requestId: z.string().min(1).max(128).describe('id of the presentation configuration'),
    webhook: WebhookConfig.optional().describe('instead of the configured one'),
    redirectUri: RedirectUri.optional().describe('instead of the configured one; not with dc-api'),
    transaction_data: z
      .array(TransactionData)
      .min(1)
      .max(20)
      .optional()
      .describe('instead of the configured'),
    origin: z
      .string()
      .min(1)
      .max(500)
      .optional()
      .describe('With dc-api: the one of the expectedOrigins whose page asks'),
  })
  .meta({ id: 'PresentationRequest' });
export type PresentationRequestBody = z.infer<typeof PresentationRequestBody>;

export type PresentationOffer = {
  readonly uri: string;
  readonly session: SessionId;
  /** For a QR code: only there when no redirect follows, which would open a browser that knows nothing of it. */
  readonly crossDeviceUri?: string;
  /** What a page passes to `navigator.credentials.get`. */
  readonly dcApi?: JsonObject;
};

/** What all kinds of requests are made of. */
type Making = {
  readonly configured: TenantConfiguration;
  readonly configuration: PresentationConfiguration;
  readonly body: PresentationRequestBody;
  readonly publicId: PublicId;
  readonly now: Date;
  readonly expiresAt: Date;
  /** `{PUBLIC_URL}/{tenant}` */
  readonly address: string;
  /** Whether the caller may know where registration certificates come from. */
  readonly isManager: boolean;
};

/** A request with the parameters that a wallet is to get. */
type Made = { readonly request: VerificationRequest; readonly parameters: JsonObject };

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
   * @throws Failure `forbidden` outside the client's restriction, `not_found` for an unknown configuration,
   *   `invalid_input` when it cannot be made: no usable access key, transaction data for unknown queries, no origin.
   */
  execute(caller: RememberedCaller, body: PresentationRequestBody): Promise<PresentationOffer> {
    return attemptFor(this.ports, caller, (known, present) => this.#request(known, present, body));
  }

  async #request(
    known: Known,
    caller: TenantCaller,
    body: PresentationRequestBody,
  ): Promise<PresentationOffer> {
    const { random, settings, webhooks } = this.ports;
    const { configured, tenantId, now } = known;
    assertMayUse(caller.allowedPresentationConfigs, [body.requestId]);
    const configuration = await configured.presentationConfiguration(body.requestId);
    if (configuration === undefined) {
      throw new Failure('not_found', `there is no presentation configuration "${body.requestId}"`);
    }
    checkTransactionData(body, configuration);
    assertCallable(webhooks, [{ path: 'webhook.url', url: body.webhook?.url }]);
    const ttl = (await configured.tenant()).sessionConfig?.ttlSeconds ?? settings.sessionTtlSeconds;
    const expiresAt = new Date(now.getTime() + Math.min(configuration.lifeTime, ttl) * 1000);
    // OpenID4VP 1.0 section 13.3: what the wallet sees never leads to what the client polls.
    const publicId = random.token() as PublicId;
    const address = issuerIdentifier(settings, tenantId);
    const isManager = caller.roles.includes('presentation:manage');
    const making = { configured, configuration, body, publicId, now, expiresAt, address, isManager };
    const made = body.response_type === 'dc-api' ? await this.#dcApi(making) : await this.#posted(making);
    const session = this.#sessionOf(making, made.request);
    await known.commit({ opens: { session } });
    return offerOf(session.id, configuration, made);
  }

  #sessionOf(
    { configured, configuration, publicId, now, expiresAt }: Making,
    request: VerificationRequest,
  ): Session {
    return {
      tenantId: configured.tenantId,
      id: this.ports.random.token() as SessionId,
      publicId,
      kind: 'verification',
      status: 'active',
      version: 1,
      createdAt: now,
      updatedAt: now,
      expiresAt,
      configurationIds: [configuration.id],
      useDcApi: isDcApi(request),
      request,
      outcome: null,
      issuedMask: 0,
      claimedAt: null,
    };
  }

  /** The wallet fetches the request, unless it stands in the address, and posts its answer. */
  async #posted(making: Making): Promise<Made> {
    const { configuration, body, publicId, address } = making;
    if (body.origin !== undefined) throw invalidInput('origin', 'Only requests with dc-api have an origin.');
    const { responseMode } = configuration;
    const responseUri = `${address}/response/${publicId}`;
    const redirectUri = body.redirectUri ?? configuration.redirectUri ?? undefined;
    const common = this.#common(making, `${address}/request/${publicId}`);
    const signer = configuration.clientIdPrefix === 'redirect_uri' ? undefined : await this.#signerOf(making);
    const clientId = signer === undefined ? redirectUriClientId(responseUri) : signer.clientId;
    const state = this.ports.random.token();
    const base = requestParameters({
      ...askedOf(common),
      responseMode,
      verifierInfo: await this.#verifierInfo(making, signer?.chain),
    });
    const parameters = postedParameters(base, { clientId, responseUri, state });
    const request: VerificationRequest = {
      ...common,
      responseMode,
      clientId,
      responseUri,
      state,
      ...(redirectUri !== undefined && { redirectUri }),
      ...(signer !== undefined && (await this.#sign(signer, parameters, making))),
    };
    return { request, parameters };
  }

  /** A page hands the request to its browser, and the answer to us (OpenID4VP 1.0 appendix A). */
  async #dcApi(making: Making): Promise<Made> {
    const { configuration, body, publicId, address } = making;
    if (body.redirectUri !== undefined) {
      throw invalidInput('redirectUri', 'With dc-api the page stays where it is; leave redirectUri out.');
    }
    const origins = originsOf(configuration, body.origin);
    const responseMode = configuration.responseMode === 'direct_post.jwt' ? 'dc_api.jwt' : 'dc_api';
    const common = this.#common(making, `${address}/dc-api/${publicId}`);
    const signer = configuration.dcApiRequest === 'unsigned' ? undefined : await this.#signerOf(making);
    const base = requestParameters({
      ...askedOf(common),
      responseMode,
      verifierInfo: await this.#verifierInfo(making, signer?.chain),
    });
    if (signer === undefined) {
      const request = { ...common, responseMode, origins, parameters: base } as const;
      return { request, parameters: base };
    }
    const { clientId } = signer;
    // OpenID4VP 1.0 appendix A.2: a wallet refuses the request on other pages.
    const parameters = { ...base, client_id: clientId, expected_origins: origins };
    const signed = await this.#sign(signer, parameters, making);
    return { request: { ...common, responseMode, origins, clientId, ...signed }, parameters };
  }

  #common({ configuration, body }: Making, requestUrl: string) {
    const { random, encryption } = this.ports;
    // HAIP 1.0 section 5: a fresh key for each request
    const keyPair = configuration.responseMode === 'direct_post.jwt' ? encryption.generate() : undefined;
    const entries = (body.transaction_data ??
      configuration.transaction_data ??
      []) as unknown as JsonObject[];
    const webhook = body.webhook ?? configuration.webhook ?? undefined;
    return {
      kind: 'verification',
      offerRequest: describe(body),
      dcqlQuery: configuration.dcql_query as unknown as JsonObject,
      nonce: random.token(),
      requestUrl,
      ...(keyPair !== undefined && {
        encryption: { publicJwk: keyPair.publicJwk as unknown as JsonObject, d: keyPair.d },
      }),
      ...(webhook !== undefined && { webhook }),
      ...(entries.length > 0 && {
        transactionData: encodeTransactionData(entries),
        transactionDataObjects: entries,
        ...(configuration.transactionDataElements && {
          transactionDataElements: configuration.transactionDataElements,
        }),
      }),
    } as const;
  }

  /** A registration certificate stands first, and a request that wants one is not made without. */
  async #verifierInfo(
    { configured, configuration, now, isManager }: Making,
    chain: KeyChain | undefined,
  ): Promise<readonly JsonObject[]> {
    const attached = (configuration.attached ?? []) as unknown as JsonObject[];
    try {
      const entry = await this.ports.registrationCertificates.entryFor(configured, configuration, chain, now);
      return entry === undefined ? attached : [entry, ...attached];
    } catch (error) {
      throw error instanceof Failure && !isManager ? withoutReason(error) : error;
    }
  }

  async #signerOf({ configured, configuration, now }: Making): Promise<Signer> {
    const { chain, clientId } = accessIdentity(
      await configured.keyChains(),
      now,
      configuration.accessKeyChainId,
    );
    if (configuration.clientIdPrefix !== 'x509_san_dns') return { chain, clientId };
    const { hostname } = new URL(this.ports.settings.publicUrl);
    return { chain, clientId: sanDnsClientId(chain, hostname), signedAs: clientId };
  }

  async #sign({ chain, signedAs }: Signer, parameters: JsonObject, { now, expiresAt }: Making) {
    const payload = requestObjectClaims(parameters, { issuedAt: now, expiresAt });
    const requestObject = await signJwt(this.ports.kms, { chain, typ: REQUEST_OBJECT_TYPE, payload });
    return { requestObject, ...(signedAs !== undefined && { signedAs }) };
  }
}

type Signer = {
  readonly chain: KeyChain;
  readonly clientId: string;
  /** When `clientId` does not name the certificate. */
  readonly signedAs?: string;
};

type Common = Pick<VerificationRequest, 'nonce' | 'dcqlQuery' | 'transactionData' | 'encryption'>;

function askedOf({ nonce, dcqlQuery, transactionData, encryption }: Common) {
  return { nonce, dcqlQuery, transactionData, encryptionJwk: encryption?.publicJwk };
}

/** @throws Failure `invalid_input` unless it is known whose page asks: presentations are made for an origin. */
function originsOf({ expectedOrigins }: PresentationConfiguration, wanted: string | undefined): string[] {
  const known = expectedOrigins ?? [];
  if (known.length === 0) {
    const message = 'The presentation configuration needs expectedOrigins for requests with dc-api.';
    throw invalidInput('response_type', message);
  }
  if (wanted === undefined) return known;
  if (!known.includes(wanted)) throw invalidInput('origin', 'It is none of the expectedOrigins.');
  return [wanted];
}

/** Addresses, ids and the state of the registrar are for those who manage configurations, and for the log. */
function withoutReason(cause: Failure): Failure {
  const { code, details } = cause;
  const { retryAfterSeconds } = details;
  const message =
    'the registration certificate of this request cannot be used at present; the log says why under this request id';
  return new Failure(
    code,
    { message, ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) },
    { cause },
  );
}

function offerOf(
  session: SessionId,
  { invocationUri: base, requestUriMethod: method }: PresentationConfiguration,
  { request, parameters }: Made,
): PresentationOffer {
  if (isDcApi(request)) return { uri: request.requestUrl, session, dcApi: dcApiRequests(request) };
  const { clientId, requestUrl, requestObject } = request;
  const byReference = {
    client_id: clientId,
    request_uri: requestUrl,
    // OpenID4VP 1.0 section 5.10: get unless stated
    ...(method === 'post' && { request_uri_method: method }),
  };
  const uri = invocationUri(base, requestObject === undefined ? parameters : byReference);
  const isCrossDevice = request.redirectUri === undefined;
  return { uri, session, ...(isCrossDevice && { crossDeviceUri: uri }) };
}

/** OpenID4VP 1.0 section 8.4 */
function checkTransactionData(
  body: PresentationRequestBody,
  { dcql_query, transactionDataElements }: PresentationConfiguration,
): void {
  const entries = body.transaction_data ?? [];
  const [fault] = transactionDataFaults(entries, dcql_query, transactionDataElements ?? {});
  if (fault !== undefined) {
    throw invalidInput(['transaction_data', ...fault.path].join('.'), fault.message);
  }
}

/** The body as the session shows it: without the webhook's key. */
function describe({ webhook, ...rest }: PresentationRequestBody): JsonObject {
  const body = webhook === undefined ? rest : { ...rest, webhook: maskWebhook(webhook) };
  return body as unknown as JsonObject;
}
