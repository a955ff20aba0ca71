import { z } from 'zod';
import { assertMayUse } from '../../domain/clients/client.ts';
import type { Session, VerificationRequest } from '../../domain/sessions/session.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { PublicId, SessionId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import {
  type PresentationConfiguration,
  RedirectUri,
  TransactionData,
  transactionDataFaults,
} from '../../domain/verification/configuration.ts';
import {
  encodeTransactionData,
  invocationUri,
  REQUEST_OBJECT_TYPE,
  requestObjectClaims,
} from '../../domain/verification/request-object.ts';
import { maskWebhook } from '../../domain/verification/webhook-secret.ts';
import { WebhookConfig } from '../../domain/webhooks/webhook.ts';
import { StaleView, type UnconfirmedCaller } from '../caller.ts';
import type { Clock } from '../ports/clock.ts';
import type { Encryption } from '../ports/encryption.ts';
import type { Kms } from '../ports/kms.ts';
import type { Random } from '../ports/random.ts';
import { issuerIdentifier, type ServiceSettings } from '../ports/settings.ts';
import type { Store } from '../ports/store.ts';
import { signJwt } from '../steps/sign-jwt.ts';
import type { TenantView } from '../steps/tenant-views.ts';
import { accessIdentity } from './access-chain.ts';

export const PresentationRequestBody = z
  .object({
    response_type: z
      .enum(['uri', 'dc-api'])
      .refine((type) => type === 'uri', 'dc-api is not supported by this release'),
    requestId: z.string().min(1).max(128).describe('id of the presentation configuration'),
    webhook: WebhookConfig.optional().describe('instead of the configured one'),
    redirectUri: RedirectUri.optional().describe('instead of the configured one'),
    transaction_data: z
      .array(TransactionData)
      .min(1)
      .max(20)
      .optional()
      .describe('instead of the configured'),
  })
  .meta({ id: 'PresentationRequest' });
export type PresentationRequestBody = z.infer<typeof PresentationRequestBody>;

export type PresentationOffer = {
  readonly uri: string;
  readonly session: SessionId;
  /** For a QR code: only there when no redirect follows, which would open a browser that knows nothing of it. */
  readonly crossDeviceUri?: string;
};

type Ports = {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly kms: Kms;
  readonly encryption: Encryption;
  readonly settings: ServiceSettings;
};

/** Makes one presentation request and signs it at once, so that each fetch is answered with the same bytes. */
export class CreatePresentationRequest {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /**
   * @throws Failure `forbidden` outside the client's restriction, `not_found` for an unknown configuration,
   *   `invalid_input` when it cannot be made: no usable access key, transaction data for unknown queries.
   */
  async execute(caller: UnconfirmedCaller, body: PresentationRequestBody): Promise<PresentationOffer> {
    const { store, clock } = this.#ports;
    assertMayUse(caller.allowedPresentationConfigs, [body.requestId]);
    const { unconfirmedView: view, tenantId } = caller;
    const configuration = await view.presentationConfiguration(body.requestId);
    if (configuration === undefined) {
      throw new Failure('not_found', `there is no presentation configuration "${body.requestId}"`);
    }
    checkTransactionData(body, configuration);
    const now = clock.now();
    const session = await this.#open(view, configuration, body, now);
    if (!(await store.beats(tenantId).openSession(session, undefined, view.head.revision))) {
      throw new StaleView();
    }
    const request = session.request as VerificationRequest;
    const uri = invocationUri(request.clientId, request.requestUrl);
    const isCrossDevice = request.redirectUri === undefined;
    return { uri, session: session.id, ...(isCrossDevice && { crossDeviceUri: uri }) };
  }

  async #open(
    view: TenantView,
    configuration: PresentationConfiguration,
    body: PresentationRequestBody,
    now: Date,
  ): Promise<Session> {
    const { random, settings } = this.#ports;
    const tenant = await view.tenant();
    const ttl = tenant.sessionConfig?.ttlSeconds ?? settings.sessionTtlSeconds;
    const expiresAt = new Date(now.getTime() + Math.min(configuration.lifeTime, ttl) * 1000);
    // OpenID4VP 1.0 section 13.3: what the wallet sees never leads to what the client polls.
    const publicId = random.token() as PublicId;
    return {
      tenantId: view.tenantId,
      id: random.token() as SessionId,
      publicId,
      kind: 'verification',
      status: 'active',
      version: 1,
      createdAt: now,
      updatedAt: now,
      expiresAt,
      configurationIds: [configuration.id],
      useDcApi: false,
      request: await this.#request(view, configuration, body, { publicId, now, expiresAt }),
      outcome: null,
      issuedMask: 0,
      claimedAt: null,
    };
  }

  async #request(
    view: TenantView,
    configuration: PresentationConfiguration,
    body: PresentationRequestBody,
    { publicId, now, expiresAt }: { publicId: PublicId; now: Date; expiresAt: Date },
  ): Promise<VerificationRequest> {
    const { random, encryption, kms, settings } = this.#ports;
    const chains = await view.keyChains();
    const { chain, clientId } = accessIdentity(chains, now, configuration.accessKeyChainId);
    const { responseMode } = configuration;
    // HAIP 1.0 section 5: a fresh key for each request
    const keyPair = responseMode === 'direct_post.jwt' ? encryption.generate() : undefined;
    const entries = (body.transaction_data ??
      configuration.transaction_data ??
      []) as unknown as JsonObject[];
    const address = issuerIdentifier(settings, view.tenantId);
    const parameters = {
      clientId,
      responseMode,
      responseUri: `${address}/response/${publicId}`,
      nonce: random.token(),
      state: random.token(),
      dcqlQuery: configuration.dcql_query as unknown as JsonObject,
      ...(entries.length > 0 && { transactionData: encodeTransactionData(entries) }),
    };
    const payload = requestObjectClaims({
      ...parameters,
      ...(keyPair !== undefined && { encryptionJwk: keyPair.publicJwk as unknown as JsonObject }),
      verifierInfo: (configuration.attached ?? []) as unknown as JsonObject[],
      issuedAt: now,
      expiresAt,
    });
    const webhook = body.webhook ?? configuration.webhook ?? undefined;
    const redirectUri = body.redirectUri ?? configuration.redirectUri ?? undefined;
    return {
      kind: 'verification',
      ...parameters,
      offerRequest: describe(body),
      requestUrl: `${address}/request/${publicId}`,
      requestObject: await signJwt(kms, { chain, typ: REQUEST_OBJECT_TYPE, payload }),
      ...(keyPair !== undefined && {
        encryption: { publicJwk: keyPair.publicJwk as unknown as JsonObject, d: keyPair.d },
      }),
      ...(webhook !== undefined && { webhook }),
      ...(redirectUri !== undefined && { redirectUri }),
      ...(entries.length > 0 && { transactionDataObjects: entries }),
    };
  }
}

/** OpenID4VP 1.0 section 8.4 */
function checkTransactionData(
  body: PresentationRequestBody,
  { dcql_query }: PresentationConfiguration,
): void {
  const [fault] = transactionDataFaults(body.transaction_data ?? [], dcql_query);
  if (fault !== undefined) {
    throw invalidInput(['transaction_data', ...fault.path].join('.'), fault.message);
  }
}

/** The body as the session shows it: without the webhook's key. */
function describe({ webhook, ...rest }: PresentationRequestBody): JsonObject {
  const body = webhook === undefined ? rest : { ...rest, webhook: maskWebhook(webhook) };
  return body as unknown as JsonObject;
}
