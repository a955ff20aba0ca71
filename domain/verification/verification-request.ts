import type { ConfirmingElement } from '../formats/mdoc/transaction-data.ts';
import type { JsonObject } from '../shared/json.ts';
import type { WebhookConfig } from '../webhooks/webhook.ts';
import type { ScaSchemas } from './sca/payload.ts';
import type { VerificationPolicy } from './verification-policy.ts';

type PresentationRequestBase = {
  readonly kind: 'verification';
  readonly offerRequest: JsonObject;
  readonly dcqlQuery: JsonObject;
  readonly nonce: string;
  readonly requestUrl: string;
  /** Signed request object, compact; served byte for byte. Absent when unsigned. */
  readonly requestObject?: string;
  /** The `x509_hash` identifier of the signer's certificate, if `clientId` has another prefix. */
  readonly signedAs?: string;
  /** Ephemeral key of this request; absent for a plain response. */
  readonly encryption?: { readonly publicJwk: JsonObject; readonly d: string };
  /** Verification policy. Absent in sessions of an earlier release, for which the configuration decides. */
  readonly policy?: VerificationPolicy;
  readonly webhook?: WebhookConfig;
  readonly redirectUri?: string;
  /**
   * The result is withheld until the browser presents the response code. Never set for the Digital Credentials API, nor with
   * `crossDeviceState`.
   */
  readonly awaitsResponseCode?: true;
  /** The exact strings sent, because hashes cover their characters (OpenID4VP 1.0 section 8.4). */
  readonly transactionData?: readonly string[];
  readonly transactionDataObjects?: readonly JsonObject[];
  /** The element in which a device confirms the data, by type. */
  readonly transactionDataElements?: { readonly [type: string]: ConfirmingElement };
  /** The TS12 schema of the payload, by type. */
  readonly transactionDataSchemas?: ScaSchemas;
};

/** A request whose response the wallet posts to this service (OpenID4VP 1.0 section 8.2). */
export type PostedVerification = PresentationRequestBase & {
  readonly responseMode: 'direct_post' | 'direct_post.jwt';
  readonly clientId: string;
  readonly responseUri: string;
  readonly state: string;
  /**
   * The `state` of the same request for a wallet on another device than the browser. A response with it is not redirected to `redirectUri`.
   * Absent without a redirect, and with `requireResponseCode: true`.
   */
  readonly crossDeviceState?: string;
  /** The request parameters, if unsigned. */
  readonly parameters?: JsonObject;
};

/** The request of ISO/IEC TS 18013-7 Annex C, and the data to validate its response. */
export type IsoMdocRequest = {
  /** CBOR in base64url. */
  readonly deviceRequest: string;
  readonly encryptionInfo: string;
  /** The origin of the only page that may use it. */
  readonly origin: string;
  /** Credential query ids by document type. */
  readonly queryIds: { readonly [docType: string]: string };
  readonly encryption: { readonly publicJwk: JsonObject; readonly d: string };
};

/** A request whose response a page receives from the browser (OpenID4VP 1.0 appendix A). */
export type DcApiVerification = PresentationRequestBase & {
  readonly responseMode: 'dc_api' | 'dc_api.jwt';
  /** Origins of the pages that may use the request; a presentation is bound to one of them. */
  readonly origins: readonly string[];
  /** Absent in unsigned and multi-signed requests. */
  readonly clientId?: string;
  /** The request parameters, if unsigned. */
  readonly parameters?: JsonObject;
  /** The multi-signed request in JWS JSON serialization, and the `x509_hash` identifiers of all signers. */
  readonly multisigned?: JsonObject;
  readonly clientIds?: readonly string[];
  /** Present if the ISO protocol is offered. */
  readonly isoMdoc?: IsoMdocRequest;
};

export type VerificationRequest = PostedVerification | DcApiVerification;

export function isDcApi(request: VerificationRequest): request is DcApiVerification {
  return 'origins' in request;
}
