import { defined } from '../../domain/shared/defined.ts';
import type { PublicId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { PresentationConfiguration } from '../../domain/verification/configuration.ts';
import { REQUEST_OBJECT_TYPE, requestObjectClaims, requestParameters } from '../../domain/verification/request-object.ts';
import type { VerificationPolicy } from '../../domain/verification/verification-policy.ts';
import type { VerificationRequest } from '../../domain/verification/verification-request.ts';
import { signJwt } from '../keys/sign-jwt.ts';
import type { Encryption } from '../ports/encryption.ts';
import type { Kms } from '../ports/kms.ts';
import type { Random } from '../ports/random.ts';
import type { ServiceSettings } from '../ports/settings.ts';
import type { RegistrationCertificates } from '../registrar/registration-certificates.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { type RequestSigner, requestSigner } from './access-chain.ts';
import { requiresAgreedAlgorithms } from './haip.ts';
import { describeRequest, type PresentationRequestBody } from './presentation-request.ts';
import { requestParts, verifierInfo, verifierInfoWithoutReason } from './request-parts.ts';

export type RequestContext = {
  readonly tenant: TenantConfiguration;
  readonly configuration: PresentationConfiguration;
  readonly body: PresentationRequestBody;
  /** Policy for the verification of the response; undefined if it is too large to be stored. */
  readonly policy: VerificationPolicy | undefined;
  readonly nonce: string;
  readonly publicId: PublicId;
  readonly now: Date;
  readonly expiresAt: Date;
  /** `{PUBLIC_URL}/{tenant}` */
  readonly address: string;
  /** True if the caller may see details of registration certificates. */
  readonly isManager: boolean;
};

/** A request with the parameters for the wallet. */
export type CreatedRequest = { readonly request: VerificationRequest; readonly parameters: JsonObject };

export type RequestPorts = {
  readonly random: Random;
  readonly kms: Kms;
  readonly encryption: Encryption;
  readonly settings: ServiceSettings;
  readonly registrationCertificates: RegistrationCertificates;
};

/** Common fields of every request, and a function for its parameters; both without the client identifier. */
export function partsOf<Mode extends string>(
  ports: RequestPorts,
  { tenant, configuration, policy, body, nonce }: RequestContext,
  requestUrl: string,
  responseMode: Mode,
) {
  const common = {
    kind: 'verification',
    offerRequest: describeRequest(body),
    requestUrl,
    responseMode,
    ...requestParts(ports, configuration, body.transaction_data, nonce),
    ...defined({ policy, webhook: body.webhook ?? configuration.webhook ?? undefined }),
  } as const;
  const { encryption, ...requestFields } = common;
  const parameters = (info: readonly JsonObject[]) =>
    requestParameters({
      ...requestFields,
      encryptionJwk: encryption?.publicJwk,
      display: configuration,
      agreedOnly: requiresAgreedAlgorithms(tenant),
      verifierInfo: info,
    });
  return { common, parameters };
}

/** The `verifier_info` of the request for this signer. @throws Failure when a registration certificate is unavailable. */
export function infoOf(
  ports: RequestPorts,
  { tenant, configuration, now, isManager }: RequestContext,
  signer: RequestSigner | undefined,
): Promise<readonly JsonObject[]> {
  const info = isManager ? verifierInfo : verifierInfoWithoutReason;
  return info(ports, tenant, configuration, signer?.chain, now);
}

/** @param accessKeyChainId overrides the configured one. @throws Failure as `requestSigner`. */
export async function signerOf(
  { settings }: RequestPorts,
  { tenant, configuration, now }: RequestContext,
  accessKeyChainId = configuration.accessKeyChainId,
): Promise<RequestSigner> {
  const { clientIdPrefix } = configuration;
  return requestSigner(await tenant.keyChains(), { accessKeyChainId, clientIdPrefix }, settings.publicUrl, now);
}

/** A signed request object, and its signer if the `client_id` does not identify it. @throws Failure as `signJwt`. */
export async function signRequest(
  { kms }: RequestPorts,
  { chain, signedAs }: RequestSigner,
  parameters: JsonObject,
  context: RequestContext,
) {
  const payload = claimsOf(parameters, context);
  const requestObject = await signJwt(kms, { chain, typ: REQUEST_OBJECT_TYPE, withKid: true, payload });
  return { requestObject, ...defined({ signedAs }) };
}

export function claimsOf(parameters: JsonObject, { now, expiresAt }: RequestContext): JsonObject {
  return requestObjectClaims(parameters, { issuedAt: now, expiresAt });
}
