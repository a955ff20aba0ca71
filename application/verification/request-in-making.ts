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
import { holdsToAgreed } from './haip.ts';
import { describeRequest, type PresentationRequestBody } from './presentation-request.ts';
import { requestParts, verifierInfo, verifierInfoForOthers } from './request-parts.ts';

/** What all kinds of requests are made of. */
export type Making = {
  readonly configured: TenantConfiguration;
  readonly configuration: PresentationConfiguration;
  readonly body: PresentationRequestBody;
  /** What the response is verified by; undefined where it is too large to be kept. */
  readonly policy: VerificationPolicy | undefined;
  readonly nonce: string;
  readonly publicId: PublicId;
  readonly now: Date;
  readonly expiresAt: Date;
  /** `{PUBLIC_URL}/{tenant}` */
  readonly address: string;
  /** Whether the caller may know where registration certificates come from. */
  readonly isManager: boolean;
};

/** A request with the parameters that a wallet is to get. */
export type Made = { readonly request: VerificationRequest; readonly parameters: JsonObject };

export type MakingPorts = {
  readonly random: Random;
  readonly kms: Kms;
  readonly encryption: Encryption;
  readonly settings: ServiceSettings;
  readonly registrationCertificates: RegistrationCertificates;
};

/** What every request has, and the parameters that a wallet gets of it; who asks stands in neither. */
export function partsOf<Mode extends string>(
  ports: MakingPorts,
  { configured, configuration, policy, body, nonce }: Making,
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
  const { encryption, ...asked } = common;
  const parameters = (info: readonly JsonObject[]) =>
    requestParameters({
      ...asked,
      encryptionJwk: encryption?.publicJwk,
      asker: configuration,
      agreedOnly: holdsToAgreed(configured),
      verifierInfo: info,
    });
  return { common, parameters };
}

/** What the request says of the verifier, as this signer. @throws Failure when it cannot be had. */
export function infoOf(
  ports: MakingPorts,
  { configured, configuration, now, isManager }: Making,
  signer: RequestSigner | undefined,
): Promise<readonly JsonObject[]> {
  const info = isManager ? verifierInfo : verifierInfoForOthers;
  return info(ports, configured, configuration, signer?.chain, now);
}

/** @param accessKeyChainId instead of the configured one. @throws Failure as `requestSigner`. */
export async function signerOf(
  { settings }: MakingPorts,
  { configured, configuration, now }: Making,
  accessKeyChainId = configuration.accessKeyChainId,
): Promise<RequestSigner> {
  const { clientIdPrefix } = configuration;
  return requestSigner(await configured.keyChains(), { accessKeyChainId, clientIdPrefix }, settings.publicUrl, now);
}

/** A request object, and who signed it where its `client_id` does not say. @throws Failure as `signJwt`. */
export async function signed({ kms }: MakingPorts, { chain, signedAs }: RequestSigner, parameters: JsonObject, making: Making) {
  const payload = claimsOf(parameters, making);
  const requestObject = await signJwt(kms, { chain, typ: REQUEST_OBJECT_TYPE, withKid: true, payload });
  return { requestObject, ...defined({ signedAs }) };
}

/** Claims of the request object. */
export function claimsOf(parameters: JsonObject, { now, expiresAt }: Making): JsonObject {
  return requestObjectClaims(parameters, { issuedAt: now, expiresAt });
}
