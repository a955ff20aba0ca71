import type { FailureCode } from './failure.ts';
import type { RefusalReason } from './refusal.ts';
import type { SessionFailureCode } from './session-failure.ts';
import type { WebhookFault } from './webhook-fault.ts';

/**
 * The explanation of one error code. Code, field and setting names are in backticks. The texts are shown by the console and by
 * docs/reference/errors.md (`npm run docs:errors`). Tables without template literals, so that bundlers can drop those that the console does
 * not use.
 */
export type ErrorExplanation = {
  /** A short phrase without a full stop. The API sends that of a failure as `title`. */
  readonly meaning: string;
  /** Empty if the meaning says it. */
  readonly cause: string;
  readonly fix: string;
  /** Interfaces or flows in which the code occurs. */
  readonly where?: string;
  /** A page of docs/reference, with an optional anchor. */
  readonly page?: string;
};

const API = 'administrative interface';
const REPORT_WALLET = 'Inform the wallet vendor.';
const LOG_HAS_REASON = 'The log has the reason. Inform the wallet vendor.';
const NEW_OFFER = 'Create a new offer.';
const WALLET_CONTINUES = 'None: the wallet retries or continues.';
const UPDATE_WALLET = 'Update the wallet, or inform its vendor.';

/** Errors that end a request; `internal_error` is a fault of the service. */
export const FAILURE_REFERENCE: Readonly<Record<FailureCode | 'internal_error', ErrorExplanation>> = {
  invalid_input: {
    where: API,
    meaning: 'The request is not valid',
    cause: 'It violates the schema or a rule; `errors` lists each field.',
    fix: 'Correct these fields; `GET /openapi.json` describes them.',
  },
  unauthenticated: {
    where: API,
    meaning: 'No valid access token',
    cause: 'The token is missing or expired, or its client was deleted.',
    fix: 'Get a token at `POST /oauth2/token`. Compare audience and clocks.',
  },
  forbidden: {
    where: API,
    meaning: 'Not allowed',
    cause:
      'The role is missing, or the client is restricted to other configurations. A `response_code` is of another session, used, or older than five minutes.',
    fix: 'Use a client that has the role.',
    page: 'roles.md',
  },
  not_found: {
    where: API,
    meaning: 'Not found',
    cause: 'The object does not exist, or belongs to another tenant.',
    fix: 'Check the id and the tenant.',
  },
  method_not_allowed: { where: API, meaning: 'Method not allowed', cause: '', fix: 'Use a method of the header `Allow`.' },
  conflict: {
    where: API,
    meaning: 'Conflict',
    cause: 'The object exists, is in use, has ended, or was changed concurrently.',
    fix: 'Read the object again; `detail` has the reason.',
    page: 'concurrent-edits.md',
  },
  session_quota_exceeded: {
    where: API,
    meaning: 'Too many open sessions',
    cause: 'The tenant reached `QUOTA_SESSION_BYTES`.',
    fix: 'Shorten sessions (`expiresIn`, `ttlSeconds`), cancel some, or raise the setting.',
    page: 'limits.md',
  },
  gone: {
    where: API,
    meaning: 'No longer available',
    cause: 'The secret was fetched, the delivery data were deleted, or the presentation request has ended.',
    fix: 'Rotate the secret, or create a new request.',
  },
  too_large: { where: API, meaning: 'Request too large', cause: '', fix: 'Send less.', page: 'limits.md' },
  unsupported_media_type: {
    where: API,
    meaning: 'Unsupported media type',
    cause: 'The body has another media type, or is compressed.',
    fix: 'Send `application/json` in UTF-8.',
  },
  too_many_requests: { where: API, meaning: 'Too many requests', cause: '', fix: 'Wait as `Retry-After` says.', page: 'limits.md' },
  unavailable: {
    where: API,
    meaning: 'Temporarily unavailable',
    cause: 'The database, a key provider or another system does not answer, or the tenant has too many waiting requests.',
    fix: 'Retry. `GET /health` names the part.',
    page: 'limits.md',
  },
  internal_error: { where: API, meaning: 'Internal error', cause: '', fix: 'Report the log entry of the request id.' },
  invalid_request: {
    where: 'all endpoints for wallets',
    meaning: 'Invalid request',
    cause: 'It violates the protocol, or was answered before.',
    fix: LOG_HAS_REASON,
  },
  invalid_client: {
    where: 'token, PAR',
    meaning: 'Invalid client',
    cause: 'The client did not authenticate itself.',
    fix: 'Check `walletClients`, the attestation, or id and secret of the client.',
    page: 'wallet-attestations.md',
  },
  invalid_grant: {
    where: 'token',
    meaning: 'Invalid grant',
    cause: 'The code is unknown, expired or redeemed, or the transaction code wrong.',
    fix: NEW_OFFER,
  },
  unsupported_grant_type: { where: 'token', meaning: 'Unsupported grant type', cause: '', fix: 'Compare with the metadata.' },
  unauthorized_client: {
    where: 'token, authorization',
    meaning: 'Client not allowed',
    cause: 'The wallet may not use this grant or endpoint, or an external provider issues the tokens (`OIDC`).',
    fix: 'Check `walletClients`, or log in at the provider.',
  },
  unsupported_response_type: {
    where: 'authorization',
    meaning: 'Unsupported response type',
    cause: '`response_type` is not `code`.',
    fix: REPORT_WALLET,
  },
  request_not_supported: {
    where: 'authorization',
    meaning: 'Request objects are not supported',
    cause: '',
    fix: 'Send plain parameters, or use PAR.',
  },
  invalid_target: { where: 'token', meaning: 'Unknown resource', cause: '`resource` is not this issuer.', fix: 'Omit it.' },
  invalid_client_attestation: {
    where: 'token, PAR',
    meaning: 'Invalid client attestation',
    cause: 'It is invalid, revoked, without available status, or of an untrusted provider.',
    fix: 'The log names fault and list. Check `walletProviderTrustLists` and the clocks.',
    page: 'wallet-attestations.md',
  },
  use_attestation_challenge: {
    where: 'token, PAR',
    meaning: 'Use the attestation challenge',
    cause: 'The proof lacks the challenge.',
    fix: WALLET_CONTINUES,
  },
  use_fresh_attestation: {
    where: 'token, PAR',
    meaning: 'Use a fresh attestation',
    cause: 'The attestation is too old.',
    fix: WALLET_CONTINUES,
  },
  invalid_scope: {
    where: 'authorization',
    meaning: 'Invalid scope',
    cause: 'No configuration has it, or the offer does not include it.',
    fix: 'Check `config.scope`.',
  },
  invalid_authorization_details: {
    where: 'authorization, token',
    meaning: 'Invalid authorization details',
    cause: 'Another type or issuer, or something not offered.',
    fix: 'Compare with the metadata.',
  },
  invalid_dpop_proof: {
    where: 'token, credential',
    meaning: 'Invalid DPoP proof',
    cause: 'The proof is invalid or was used before.',
    fix: 'Compare the clocks. A proxy must not change host or path.',
  },
  use_dpop_nonce: { where: 'token, credential', meaning: 'Use the DPoP nonce', cause: 'The proof lacks the nonce.', fix: WALLET_CONTINUES },
  missing_token: { where: 'credential', meaning: 'No access token', cause: '', fix: REPORT_WALLET },
  invalid_token: {
    where: 'credential',
    meaning: 'Invalid access token',
    cause: 'The token is unknown, expired, revoked, or for another server.',
    fix: NEW_OFFER,
  },
  insufficient_scope: { where: 'credential', meaning: 'Insufficient scope', cause: 'The token is for another credential.', fix: NEW_OFFER },
  missing_interaction_type: {
    where: 'interactive authorization',
    meaning: 'Missing interaction type',
    cause: 'The wallet does not list a required interaction.',
    fix: UPDATE_WALLET,
  },
  redirect_to_web: {
    where: 'interactive authorization',
    meaning: 'Redirect to the web',
    cause: 'The credential needs no interaction; PAR follows.',
    fix: WALLET_CONTINUES,
  },
  invalid_session: {
    where: 'interactive authorization',
    meaning: 'Invalid session',
    cause: '`auth_session` is expired or was used.',
    fix: WALLET_CONTINUES,
  },
  access_denied: {
    where: 'authorization',
    meaning: 'Access denied',
    cause: 'The user declined, or a backend refused, or a presentation was rejected.',
    fix: 'See `report` and `deliveries` of the session. An offer that the user declined can be used again.',
  },
  invalid_credential_request: { where: 'credential', meaning: 'Invalid credential request', cause: '', fix: LOG_HAS_REASON },
  unknown_credential_configuration: {
    where: 'credential',
    meaning: 'Unknown credential configuration',
    cause: '',
    fix: 'Check `credential_configuration_id`.',
  },
  unknown_credential_identifier: {
    where: 'credential',
    meaning: 'Unknown credential identifier',
    cause: 'The token does not include this credential.',
    fix: NEW_OFFER,
  },
  invalid_proof: {
    where: 'credential',
    meaning: 'Invalid proof',
    cause: '',
    fix: 'Compare with `proof_types_supported` of the metadata, and the clocks.',
  },
  invalid_nonce: { where: 'credential', meaning: 'Invalid nonce', cause: 'The nonce is expired or was used.', fix: WALLET_CONTINUES },
  invalid_encryption_parameters: {
    where: 'credential',
    meaning: 'Invalid encryption parameters',
    cause: 'The response cannot be encrypted as requested.',
    fix: 'Compare with the metadata.',
  },
  credential_request_denied: {
    where: 'credential, deferred credential',
    meaning: 'Credential request denied',
    cause: 'No claims, a refusal of the backend, an ended session, `maxIssuances`, or a revoked credential.',
    fix: 'See the log, and `failure` of a failed session.',
  },
  invalid_transaction_id: {
    where: 'deferred credential',
    meaning: 'Invalid transaction',
    cause: 'The id is unknown, expired, or was used to fetch the credential.',
    fix: NEW_OFFER,
  },
  issuance_pending: {
    where: 'old `GET /deferred_credential` only',
    meaning: 'Not ready yet',
    cause: 'The backend has not decided; the endpoint of the metadata answers 202 with `interval`.',
    fix: WALLET_CONTINUES,
  },
  invalid_notification_id: {
    where: 'notification',
    meaning: 'Invalid notification',
    cause: 'No credential was issued under this id.',
    fix: REPORT_WALLET,
  },
  invalid_notification_request: { where: 'notification', meaning: 'Invalid notification request', cause: '', fix: REPORT_WALLET },
};

const NEW_REQUEST = 'Create a new request.';
const TRY_AGAIN = 'Try again later.';

/** Reasons for the failure of a session. */
export const SESSION_FAILURE_REFERENCE: Readonly<Record<SessionFailureCode, ErrorExplanation>> = {
  claims_unavailable: {
    where: 'issuance',
    meaning: 'The claims are not available',
    cause: 'The claims webhook failed, or its claims violate schema or format; see `message`.',
    fix: 'Fix the backend or the schema, and create a new offer.',
    page: 'troubleshooting.md#the-webhook-is-not-called',
  },
  tx_code_attempts: {
    where: 'issuance',
    meaning: 'The transaction code was wrong five times',
    cause: '',
    fix: 'Create a new offer. Send its code on another channel than the link.',
  },
  code_replayed: {
    where: 'issuance',
    meaning: 'An authorization code was redeemed twice',
    cause:
      'A wallet without an offer repeated its code with the same proof; its tokens were revoked. With an offer only the tokens of that wallet end.',
    fix: 'Start again. Inform the wallet vendor.',
  },
  refresh_token_replayed: {
    where: 'issuance',
    meaning: 'A refresh token was used twice',
    cause: 'It may be copied, so its tokens were revoked.',
    fix: NEW_OFFER,
  },
  deferred_failed: {
    where: 'issuance',
    meaning: 'The backend refused the deferred credential',
    cause: 'It called `POST /issuer/deferred/{transactionId}/fail`.',
    fix: 'See `message`.',
  },
  presentation_refused: {
    where: 'verification',
    meaning: 'A required credential is missing or was rejected',
    cause: '',
    fix: 'See the first failed check of `report`.',
    page: '#rejected-presentations',
  },
  malformed: {
    where: 'verification',
    meaning: 'The response cannot be parsed',
    cause: 'It is not a presentation response.',
    fix: UPDATE_WALLET,
  },
  decryption_failed: {
    where: 'verification',
    meaning: 'Five responses could not be decrypted',
    cause: 'The wallet encrypts for another key.',
    fix: NEW_REQUEST,
  },
  response_code_missing: {
    where: 'verification',
    meaning: 'No browser sent the response code within five minutes',
    cause: 'The user did not return to the starting browser, or its page did not report the code.',
    fix: 'Check `redirectUri`; its page must call `GET /session/{id}?response_code=`. Create a new request.',
  },
  response_mode: {
    where: 'verification',
    meaning: 'The response has another response mode',
    cause: 'It is unencrypted although encryption is required, or the reverse, or has fields that exclude each other.',
    fix: 'Set `responseMode` to one that the wallet supports.',
  },
  webhook_failed: {
    where: 'verification',
    meaning: 'The presentation webhook failed',
    cause: '',
    fix: 'See the delivery, then `POST /session/{id}/deliveries/{deliveryId}/retry`.',
    page: '#failed-webhooks',
  },
  cancelled: {
    where: 'both',
    meaning: 'The session was cancelled',
    cause: '`POST /session/{id}/cancel` was called; the audit log names the client.',
    fix: 'Create a new session.',
  },
  internal_error: { where: 'both', meaning: 'Internal error', cause: '', fix: 'Try again. Report the log entry of the request id.' },
  access_denied: {
    where: 'verification',
    meaning: 'The wallet declined',
    cause: 'The user declined, or has no matching credential.',
    fix: 'Request less, or other credentials.',
  },
  invalid_request: {
    where: 'verification',
    meaning: 'The wallet does not accept the request',
    cause: '',
    fix: 'See the log of the wallet. Try another `clientIdPrefix` or `responseMode`.',
  },
  invalid_client: {
    where: 'verification',
    meaning: 'The wallet does not trust this verifier',
    cause: 'It does not trust the access certificate, or does not support its prefix.',
    fix: 'Get a certificate from an authority that the wallet trusts.',
    page: 'troubleshooting.md#a-signature-is-not-trusted',
  },
  invalid_scope: { where: 'verification', meaning: 'The wallet does not know the requested scope', cause: '', fix: 'Use another query.' },
  invalid_request_uri_method: {
    where: 'verification',
    meaning: 'The wallet does not fetch requests by `post`',
    cause: '',
    fix: 'Set `requestUriMethod` to `get`.',
  },
  invalid_transaction_data: {
    where: 'verification',
    meaning: 'The wallet does not accept the transaction data',
    cause: 'It does not know the type, or has no credential that may confirm it.',
    fix: 'Check `type` and `credential_ids`.',
  },
  vp_formats_not_supported: {
    where: 'verification',
    meaning: 'The wallet supports none of the formats',
    cause: '',
    fix: 'Request another format.',
  },
  wallet_unavailable: { where: 'verification', meaning: 'The wallet could not be started', cause: '', fix: TRY_AGAIN },
  unauthorized_client: {
    where: 'verification',
    meaning: 'The wallet does not answer this verifier',
    cause: '',
    fix: 'Register with the provider of the wallet.',
  },
  unsupported_response_type: { where: 'verification', meaning: 'The wallet does not support `vp_token`', cause: '', fix: UPDATE_WALLET },
  server_error: { where: 'verification', meaning: 'The wallet failed', cause: '', fix: TRY_AGAIN },
  temporarily_unavailable: { where: 'verification', meaning: 'The wallet is temporarily unavailable', cause: '', fix: TRY_AGAIN },
  wallet_error: {
    where: 'verification',
    meaning: 'The wallet sent an unspecified error',
    cause: '`message` begins with the code of the wallet.',
    fix: 'See the documentation of the wallet.',
  },
};

/** Reasons of a failed webhook call. */
export const WEBHOOK_FAULT_REFERENCE: Readonly<Record<WebhookFault, ErrorExplanation>> = {
  refused_address: {
    meaning: 'The address is not allowed',
    cause: 'It is neither public https nor in `OUTBOUND_ALLOW`.',
    fix: 'Use another address, or list it.',
    page: 'outgoing-calls.md',
  },
  timeout: { meaning: 'No answer within ten seconds', cause: '', fix: 'Answer first and process later. Defer claims that take longer.' },
  too_large: { meaning: 'The answer is too large', cause: 'It exceeds 1 MiB.', fix: 'Answer with less.' },
  unreachable: {
    meaning: 'No answer',
    cause: 'The log names DNS, connection, or TLS with its reason, such as an expired certificate.',
    fix: 'Fix what it names. Try the address from the machine of the service.',
  },
  busy: { meaning: 'Too many calls to the backend are running', cause: '', fix: 'Make the backend answer faster.' },
  bad_status: {
    meaning: 'The answer has another status than 2xx',
    cause: 'The backend failed, or redirects.',
    fix: 'Set the final address. See the log of the backend.',
  },
  not_json: {
    meaning: 'The answer is not JSON',
    cause: 'Claims and interactive authorization need a JSON object.',
    fix: 'Answer with one.',
  },
};

const ISSUER = 'The issuer must fix and reissue it.';
const CERTIFICATE = 'The issuer must reissue it under another certificate.';
const CHANGED = 'Do not accept it. If it recurs, have it reissued and inform the wallet vendor.';
const REQUEST_AGAIN = 'Create a new request. Check the clocks.';
const REVOCATION_LIST = 'Check that the service reaches the list of the certificate or credential.';
const METADATA = 'The issuer must fix them, or do not enforce them.';
const QUERY = 'Compare type, format and paths of the query, or request less.';
const TRANSACTION = 'Use a type and hash algorithms that the wallet supports.';
const HOLDER_RENEWS = 'The holder must renew it. Check the clock of the service.';
const ASK_ISSUER = 'The holder must ask the issuer.';

/** Reasons for rejecting a presented credential. */
export const REFUSAL_REFERENCE: Readonly<Record<RefusalReason, ErrorExplanation>> = {
  untrusted_chain: {
    meaning: 'The issuer is not trusted',
    cause: 'No trust anchor issued the certificate. The report names unusable lists.',
    fix: 'Add its authority to the trust anchors, if you trust it.',
    page: 'issuer-trust.md',
  },
  certificate_expired: { meaning: 'A certificate of the issuer is expired', cause: 'It is outside its validity period.', fix: CERTIFICATE },
  certificate_profile: {
    meaning: 'A certificate of the issuer may not sign credentials, such as that of a web server',
    cause: '',
    fix: CERTIFICATE,
    page: 'issuer-trust.md#extended-key-usage',
  },
  certificate_revoked: { meaning: 'A certificate of the issuer is revoked', cause: '', fix: CERTIFICATE },
  revocation_unavailable: {
    meaning: 'The revocation status of a certificate is not available',
    cause: 'It is required, and no list could be fetched.',
    fix: REVOCATION_LIST,
    page: 'issuer-trust.md#certificate-revocation',
  },
  x5c_contains_anchor: { meaning: 'The certificate chain contains its trust anchor', cause: 'A profile forbids it.', fix: ISSUER },
  issuer_key_unresolved: {
    meaning: 'The key of the issuer cannot be determined',
    cause: 'There is no readable certificate.',
    fix: CERTIFICATE,
  },
  issuer_typ: { meaning: 'The credential has another type in its header', cause: '`typ` is not that of the format.', fix: ISSUER },
  issuer_alg: { meaning: 'The signature algorithm of the issuer is not accepted', cause: '', fix: ISSUER },
  unsupported_crit: { meaning: 'The credential has an unknown critical extension', cause: '', fix: ISSUER },
  issuer_signature: {
    meaning: 'The signature of the issuer is invalid',
    cause: 'The credential was changed, or another key signed it.',
    fix: CHANGED,
  },
  credential_expired: { meaning: 'The credential is expired', cause: 'It ended more than one minute ago.', fix: HOLDER_RENEWS },
  credential_not_yet_valid: {
    meaning: 'The credential is not yet valid',
    cause: 'It begins more than one minute from now.',
    fix: HOLDER_RENEWS,
  },
  credential_audience: { meaning: 'The credential is for other verifiers', cause: 'The issuer restricted it (`aud`).', fix: ASK_ISSUER },
  repeated_credential: { meaning: 'The credential was sent twice', cause: '', fix: NEW_REQUEST },
  issuer_country_mismatch: {
    meaning: 'The countries do not match',
    cause: 'Driving licence, signer and CA are of different countries or states.',
    fix: CERTIFICATE,
    page: 'issuer-trust.md#driving-licences',
  },
  signed_outside_certificate: { meaning: 'The certificate was not valid at the time of signing', cause: '', fix: CERTIFICATE },
  status_revoked: { meaning: 'The issuer revoked the credential', cause: '', fix: ASK_ISSUER, page: 'verifying.md#credential-status' },
  status_suspended: { meaning: 'The issuer suspended the credential', cause: '', fix: ASK_ISSUER, page: 'verifying.md#credential-status' },
  status_unknown: {
    meaning: 'The status of the credential is unknown',
    cause: 'It is neither valid, revoked nor suspended.',
    fix: ASK_ISSUER,
    page: 'verifying.md#credential-status',
  },
  status_unavailable: {
    meaning: 'The status of the credential is not available',
    cause: 'The list cannot be fetched, or is not in `OUTBOUND_ALLOW`.',
    fix: REVOCATION_LIST,
    page: 'verifying.md#credential-status',
  },
  status_invalid: {
    meaning: 'The status list or its signer is invalid',
    cause: '',
    fix: 'The issuer must publish a valid list.',
    page: 'verifying.md#credential-status',
  },
  type_metadata_unavailable: {
    meaning: 'The type metadata are not available',
    cause: '',
    fix: METADATA,
    page: 'issuer-trust.md#type-metadata',
  },
  type_metadata_invalid: {
    meaning: 'The type metadata are invalid',
    cause: 'Malformed, of another type, or without matching hash.',
    fix: METADATA,
    page: 'issuer-trust.md#type-metadata',
  },
  type_metadata_broken: {
    meaning: 'The credential contradicts its type metadata',
    cause: '',
    fix: METADATA,
    page: 'issuer-trust.md#type-metadata',
  },
  format_mismatch: { meaning: 'The credential has another format', cause: '', fix: QUERY },
  type_mismatch: { meaning: 'The credential has another type', cause: '', fix: QUERY },
  doctype_mismatch: { meaning: 'The mdoc has another document type', cause: '', fix: QUERY },
  missing_claim: { meaning: 'A requested claim is missing', cause: 'It is absent, or the user did not disclose it.', fix: QUERY },
  value_mismatch: { meaning: 'A claim has another value', cause: '', fix: QUERY },
  claim_set_unsatisfied: { meaning: 'No claim set is complete', cause: '', fix: QUERY },
  untrusted_authority: {
    meaning: 'The issuer is not one of the requested authorities',
    cause: 'It is trusted, but not in `trusted_authorities`.',
    fix: 'Add its authority to `trusted_authorities`, or omit them.',
  },
  holder_binding_missing: { meaning: 'The key binding is missing', cause: '', fix: UPDATE_WALLET },
  device_auth_missing: { meaning: 'The device authentication is missing', cause: '', fix: UPDATE_WALLET },
  holder_key_missing: { meaning: 'The credential is bound to no key', cause: 'Possession cannot be proved.', fix: ISSUER },
  kb_typ: { meaning: 'The key binding has another type', cause: '`typ` is not `kb+jwt`.', fix: UPDATE_WALLET },
  kb_alg: { meaning: 'The key binding has another algorithm than the key', cause: '', fix: UPDATE_WALLET },
  device_alg: { meaning: 'The device signature has another algorithm than the key', cause: '', fix: UPDATE_WALLET },
  kb_signature: {
    meaning: 'The signature of the key binding is invalid',
    cause: 'It was changed, or another key signed it.',
    fix: UPDATE_WALLET,
  },
  device_signature: {
    meaning: 'The device signature is invalid',
    cause: 'Another key signed it, or it is for another request, address or page.',
    fix: UPDATE_WALLET,
  },
  kb_claim_missing: { meaning: 'A claim of the key binding is missing', cause: '', fix: UPDATE_WALLET },
  kb_claim_type: { meaning: 'A claim of the key binding has another type', cause: '', fix: UPDATE_WALLET },
  aud_not_string: { meaning: 'The audience of the key binding is not a string', cause: '', fix: UPDATE_WALLET },
  nonce_mismatch: {
    meaning: 'The response is for another request',
    cause: 'Nothing of it is used. This precedes other faults, also `device_signature`.',
    fix: REQUEST_AGAIN,
  },
  aud_mismatch: {
    meaning: 'The response is for another verifier',
    cause: 'The wallet signed it for another verifier or page.',
    fix: UPDATE_WALLET,
  },
  kb_iat_window: {
    meaning: 'The key binding is too old or from the future',
    cause: 'It is older than the request or five minutes, or the clocks differ.',
    fix: REQUEST_AGAIN,
  },
  sd_hash_mismatch: { meaning: 'The disclosures were changed', cause: 'Some were added or removed after signing.', fix: UPDATE_WALLET },
  strong_authentication: {
    meaning: 'The proof of user authentication is incomplete',
    cause: 'For a payment `jti`, `amr` or `response_mode` is missing; the report names it.',
    fix: UPDATE_WALLET,
    page: 'presentation-requests.md#payments-ts12-of-the-european-wallet',
  },
  transaction_data_missing: { meaning: 'The transaction was not confirmed', cause: '', fix: TRANSACTION },
  transaction_data_mismatch: { meaning: 'Another transaction was confirmed', cause: '', fix: TRANSACTION },
  transaction_data_alg: { meaning: 'The transaction was confirmed with another hash algorithm', cause: '', fix: TRANSACTION },
  key_authorization: { meaning: 'The device signed elements that it may not sign', cause: '', fix: ISSUER },
  malformed: {
    meaning: 'The presentation cannot be parsed',
    cause: 'It violates its format, or a limit that the report names.',
    fix: 'Update the wallet. If the credential is malformed, the issuer must reissue it.',
    page: 'verifying.md#limits',
  },
  too_deep: { meaning: 'The credential is nested too deeply', cause: 'It has more than 32 levels.', fix: ISSUER },
  response_status: { meaning: 'The mdoc response reports an error', cause: '`status` is not 0.', fix: UPDATE_WALLET },
  multiple_documents: { meaning: 'The mdoc response contains several documents', cause: '', fix: UPDATE_WALLET },
  unsupported_version: { meaning: 'The mdoc response has another version', cause: '', fix: UPDATE_WALLET },
  digest_mismatch: { meaning: 'An element was changed', cause: 'It does not match the signed digest.', fix: CHANGED },
  duplicate_element: { meaning: 'An element occurs twice', cause: 'The wallet or the issuer repeated it.', fix: UPDATE_WALLET },
  unsupported_hash: {
    meaning: 'The digests use an unsupported hash algorithm',
    cause: 'It is not SHA-256, SHA-384 or SHA-512.',
    fix: ISSUER,
  },
  duplicate_digest: { meaning: 'A digest occurs twice', cause: 'The issuer used it for two elements.', fix: ISSUER },
  malformed_sd: { meaning: '`_sd` of the SD-JWT is malformed', cause: '', fix: ISSUER },
  malformed_array_digest: { meaning: 'An array digest of the SD-JWT is malformed', cause: '', fix: ISSUER },
  nested_sd_alg: { meaning: '`_sd_alg` is not at the top level', cause: '', fix: ISSUER },
  reserved_key: { meaning: 'The SD-JWT uses a reserved key', cause: '', fix: ISSUER },
  duplicate_disclosure: { meaning: 'A disclosure occurs twice', cause: '', fix: UPDATE_WALLET },
  unreferenced_disclosure: { meaning: 'A disclosure is not part of the credential', cause: '', fix: CHANGED },
  malformed_disclosure: { meaning: 'A disclosure is malformed', cause: 'It is not a JSON array in base64url.', fix: UPDATE_WALLET },
  wrong_disclosure_length: {
    meaning: 'A disclosure has a wrong number of elements',
    cause: 'An object property has three, an array element two.',
    fix: UPDATE_WALLET,
  },
  claim_exists: { meaning: 'A disclosure repeats a claim', cause: '', fix: ISSUER },
  reserved_claim_name: {
    meaning: 'A disclosure has a reserved name',
    cause: 'The name is `_sd`, `...` or another forbidden name.',
    fix: ISSUER,
  },
  forbidden_disclosure: { meaning: 'A disclosure adds a claim that must not be selective', cause: '', fix: ISSUER },
};
