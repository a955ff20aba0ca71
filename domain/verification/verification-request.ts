import type { ConfirmingElement } from '../formats/mdoc/transaction-data.ts';
import type { JsonObject } from '../shared/json.ts';
import type { WebhookConfig } from '../webhooks/webhook.ts';
import type { ScaSchemas } from './sca/payload.ts';
import type { VerificationPolicy } from './verification-policy.ts';

type AskedPresentation = {
  readonly kind: 'verification';
  readonly offerRequest: JsonObject;
  readonly dcqlQuery: JsonObject;
  readonly nonce: string;
  readonly requestUrl: string;
  /** Signed request object, compact; served byte for byte however often it is fetched. Absent when unsigned. */
  readonly requestObject?: string;
  /** Who signed it, when `clientId` does not say: the `x509_hash` identifier of the certificate. */
  readonly signedAs?: string;
  /** Ephemeral key of this request; absent when the response comes in the clear. */
  readonly encryption?: { readonly publicJwk: JsonObject; readonly d: string };
  /** What the presentation is verified by. Absent in sessions of an earlier release: the configuration decides there. */
  readonly policy?: VerificationPolicy;
  readonly webhook?: WebhookConfig;
  readonly redirectUri?: string;
  /**
   * The result is kept until the browser brings the response code. Never through the Digital Credentials API, nor with `crossDeviceState`.
   */
  readonly awaitsResponseCode?: true;
  /** The exact strings sent, since hashes cover their characters (OpenID4VP 1.0 section 8.4). */
  readonly transactionData?: readonly string[];
  readonly transactionDataObjects?: readonly JsonObject[];
  /** Per type the element in which a device confirms it. */
  readonly transactionDataElements?: { readonly [type: string]: ConfirmingElement };
  /** Per type the schema of TS12 that its payload has. */
  readonly transactionDataSchemas?: ScaSchemas;
};

/** A wallet posts its answer to an address of this service (OpenID4VP 1.0 section 8.2). */
export type PostedVerification = AskedPresentation & {
  readonly responseMode: 'direct_post' | 'direct_post.jwt';
  readonly clientId: string;
  readonly responseUri: string;
  readonly state: string;
  /**
   * The `state` of the same request for a wallet on another device than the browser. A response with it is not redirected
   * to `redirectUri`. Absent where no redirect can follow, and with `requireResponseCode: true`.
   */
  readonly crossDeviceState?: string;
  /** The request itself, when it is unsigned. */
  readonly parameters?: JsonObject;
};

/** The request of ISO/IEC TS 18013-7 Annex C, and what its answer is held against. */
export type IsoMdocAsked = {
  /** CBOR as base64url, both. */
  readonly deviceRequest: string;
  readonly encryptionInfo: string;
  /** The one page that it was made for. */
  readonly origin: string;
  /** Which credential query a document answers, by its type. */
  readonly queryIds: { readonly [docType: string]: string };
  readonly encryption: { readonly publicJwk: JsonObject; readonly d: string };
};

/** A page hands the answer over that its browser got from a wallet (OpenID4VP 1.0 appendix A). */
export type DcApiVerification = AskedPresentation & {
  readonly responseMode: 'dc_api' | 'dc_api.jwt';
  /** Whose pages may ask; a presentation is made for one of them. */
  readonly origins: readonly string[];
  /** Absent in an unsigned request, and in one that several sign. */
  readonly clientId?: string;
  /** The request itself, when it is unsigned. */
  readonly parameters?: JsonObject;
  /** The request in the JSON form of a JWS, when several sign it, and the `x509_hash` identifiers of all of them. */
  readonly multisigned?: JsonObject;
  readonly clientIds?: readonly string[];
  /** Absent unless the protocol of ISO is offered. */
  readonly isoMdoc?: IsoMdocAsked;
};

export type VerificationRequest = PostedVerification | DcApiVerification;

export function isDcApi(request: VerificationRequest): request is DcApiVerification {
  return 'origins' in request;
}
