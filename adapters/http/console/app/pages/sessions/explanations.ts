/**
 * Cause and cure of each failure code, as docs/troubleshooting.md has them, and what each reason of a report means, as
 * docs/verifying.md has it: a test holds the two together.
 */
export const FAILURES: Readonly<Record<string, readonly [cause: string, cure: string]>> = {
  claims_unavailable: [
    'the claims webhook did not answer as it should, or its claims fit neither schema nor format: message says which of it',
    'mend the backend or the schema, make another offer',
  ],
  tx_code_attempts: [
    'the transaction code was wrong five times',
    'make another offer; send the code by another way than the link',
  ],
  code_replayed: [
    'an authorization code of a wallet that began by itself came twice from who could prove the same, so its tokens were revoked. Of an offer only the tokens of that wallet end, since others may come with it',
    'let the wallet begin again; report it to its maker',
  ],
  refresh_token_replayed: [
    'a refresh token came back after it was used, so its tokens were revoked',
    'make another offer; somebody may have copied it',
  ],
  deferred_failed: [
    'your backend called POST /issuer/deferred/{transactionId}/fail',
    'see message, which has what it said',
  ],
  presentation_refused: [
    'a required credential is missing or not good',
    'see the first check that failed in report, and what its reason means in verifying',
  ],
  malformed: [
    'what the wallet sent is no presentation response',
    'update the wallet; report it to its maker with the request id',
  ],
  decryption_failed: [
    'five answers came that nobody could decrypt',
    'make another request; the wallet encrypts for another key',
  ],
  response_code_missing: [
    'the wallet answered, and no browser brought the response code within five minutes',
    'make another request; see whether redirectUri leads the user back to where it began, and whether that page calls GET /session/{id}?response_code=',
  ],
  response_mode: [
    'an answer in the clear where it was to be encrypted, or the other way round, or with members that exclude each other',
    'set responseMode to what the wallet can do',
  ],
  webhook_failed: [
    'the presentation webhook did not take the result',
    'see webhooks, then POST /session/{id}/deliveries/{deliveryId}/retry',
  ],
  cancelled: ['somebody called POST /session/{id}/cancel', 'the audit log says who; make another one'],
  internal_error: ['a fault of the service', 'the log has it under the request id; try again, and report it'],
  access_denied: [
    'the user declined, or the wallet has nothing that fits',
    'ask for less, or for other credentials',
  ],
  invalid_request: [
    'the wallet does not understand the request',
    'look at its log; try another clientIdPrefix or responseMode',
  ],
  invalid_client: [
    'the wallet does not trust the access certificate, or its prefix',
    'have the certificate issued by an authority that the wallet knows',
  ],
  invalid_scope: ['the wallet does not know what is asked for', 'ask with another query'],
  invalid_request_uri_method: ['the wallet does not fetch requests by post', 'set requestUriMethod to get'],
  invalid_transaction_data: [
    'the wallet does not know the type of the transaction, or has no credential that may confirm it',
    'look at type and credential_ids',
  ],
  vp_formats_not_supported: ['the wallet knows none of the formats', 'ask for a format that it has'],
  wallet_unavailable: ['the wallet could not be started', 'let the user try again'],
  unauthorized_client: [
    'the wallet does not answer this verifier',
    'have yourself registered where the wallet looks',
  ],
  unsupported_response_type: ['the wallet knows no vp_token', 'update the wallet'],
  server_error: ['the wallet, or a server of its own, failed', 'try again'],
  temporarily_unavailable: ['the same, for a while', 'try again later'],
  wallet_error: [
    'the wallet named an error that no specification has; message begins with it',
    'look at its documentation',
  ],
};

export const REASONS: Readonly<Record<string, string>> = {
  untrusted_chain: 'no anchor vouches for the certificate. The report names lists that could not be used',
  certificate_expired:
    'a certificate of the issuer is out of its time, or not one that may sign credentials, by its extended key usage for example',
  certificate_profile:
    'a certificate of the issuer is out of its time, or not one that may sign credentials, by its extended key usage for example',
  certificate_revoked:
    'the certificate of the signer, or of an authority above it, is on the revocation list of its issuer',
  revocation_unavailable: 'a revocation list is required and there is none that counts: see above',
  x5c_contains_anchor: 'the chain contains its trust anchor, which the profile of the tenant forbids',
  issuer_key_unresolved: 'there is no readable certificate of the issuer in it',
  issuer_typ:
    'its header has another type, an algorithm that is not accepted, or an extension that nobody here knows',
  issuer_alg:
    'its header has another type, an algorithm that is not accepted, or an extension that nobody here knows',
  unsupported_crit:
    'its header has another type, an algorithm that is not accepted, or an extension that nobody here knows',
  issuer_signature: 'the signature of the issuer is wrong: it was changed, or another key signed it',
  credential_expired: 'it is out of its time; a minute of difference is forgiven',
  credential_not_yet_valid: 'it is out of its time; a minute of difference is forgiven',
  credential_audience:
    'the issuer made it for other recipients (aud), neither for the client identifier nor for an origin of this verifier',
  repeated_credential: 'the same credential was sent before for this query',
  issuer_country_mismatch:
    'a driving licence is of another country or state than its signer, or its signer than the authority: see above',
  signed_outside_certificate: 'an mdoc was signed when its certificate did not count',
  status_revoked: 'the issuer took it back, or holds it back',
  status_suspended: 'the issuer took it back, or holds it back',
  status_unknown: 'its status cannot be told: see above',
  status_unavailable: 'its status cannot be told: see above',
  status_invalid: 'its status cannot be told: see above',
  type_metadata_unavailable:
    'typeMetadata is enforced, and the metadata of its type cannot be had, are not those that it names, or say otherwise of a claim',
  type_metadata_invalid:
    'typeMetadata is enforced, and the metadata of its type cannot be had, are not those that it names, or say otherwise of a claim',
  type_metadata_broken:
    'typeMetadata is enforced, and the metadata of its type cannot be had, are not those that it names, or say otherwise of a claim',
  format_mismatch: 'it is another kind of credential than was asked for',
  type_mismatch: 'it is another kind of credential than was asked for',
  doctype_mismatch: 'it is another kind of credential than was asked for',
  missing_claim: 'a claim was not shown, or has another value',
  value_mismatch: 'a claim was not shown, or has another value',
  claim_set_unsatisfied: 'none of the sets of claims is complete',
  untrusted_authority: 'the issuer is trusted, but not one of trusted_authorities',
  holder_binding_missing: 'the wallet did not prove that the credential is its own',
  device_auth_missing: 'the wallet did not prove that the credential is its own',
  holder_key_missing: 'the issuer bound it to no key that could prove it',
  kb_typ: 'the proof has another type, or another algorithm than the key',
  kb_alg: 'the proof has another type, or another algorithm than the key',
  device_alg: 'the proof has another type, or another algorithm than the key',
  kb_signature: 'the proof is wrong. For an mdoc also: it was made for another request, address or page',
  device_signature: 'the proof is wrong. For an mdoc also: it was made for another request, address or page',
  kb_claim_missing: 'something that the proof has to say is absent or of another type',
  kb_claim_type: 'something that the proof has to say is absent or of another type',
  aud_not_string: 'something that the proof has to say is absent or of another type',
  nonce_mismatch:
    'the answer is for another request; nothing of it is used, and no list of its credentials is asked for. Another nonce counts also where something else is wrong with the credential, and so does a device that signed no transcript of the request (device_signature)',
  aud_mismatch: 'it was made for another verifier, or for another page',
  kb_iat_window:
    'the proof is older than the request or five minutes, or from the future: look at the clocks',
  sd_hash_mismatch: 'disclosures were added or removed after the wallet had signed',
  strong_authentication:
    'the wallet did not say how it authenticated the user of a payment: jti, amr or response_mode, which the report names',
  transaction_data_missing:
    'nobody confirmed the transaction, or another one, or with a hash that was not offered',
  transaction_data_mismatch:
    'nobody confirmed the transaction, or another one, or with a hash that was not offered',
  transaction_data_alg:
    'nobody confirmed the transaction, or another one, or with a hash that was not offered',
  key_authorization: 'the device signed elements that the issuer does not let it sign',
  malformed: 'it is not what its format says, or nested deeper than 32 levels',
  too_deep: 'it is not what its format says, or nested deeper than 32 levels',
  response_status: 'the mdoc answer reports an error, holds several documents, or is of another version',
  multiple_documents: 'the mdoc answer reports an error, holds several documents, or is of another version',
  unsupported_version: 'the mdoc answer reports an error, holds several documents, or is of another version',
  digest_mismatch: 'an element was changed, or stands there twice',
  duplicate_element: 'an element was changed, or stands there twice',
  unsupported_hash: 'digests by another hash than SHA-256, SHA-384 or SHA-512',
  duplicate_digest: 'the issuer made an SD-JWT that breaks RFC 9901',
  malformed_sd: 'the issuer made an SD-JWT that breaks RFC 9901',
  malformed_array_digest: 'the issuer made an SD-JWT that breaks RFC 9901',
  nested_sd_alg: 'the issuer made an SD-JWT that breaks RFC 9901',
  reserved_key: 'the issuer made an SD-JWT that breaks RFC 9901',
  duplicate_disclosure: 'disclosures are doubled, belong to nothing, or are broken',
  unreferenced_disclosure: 'disclosures are doubled, belong to nothing, or are broken',
  malformed_disclosure: 'disclosures are doubled, belong to nothing, or are broken',
  wrong_disclosure_length: 'disclosures are doubled, belong to nothing, or are broken',
  claim_exists: 'a disclosure puts something where it must not be, such as a second name or the status',
  reserved_claim_name:
    'a disclosure puts something where it must not be, such as a second name or the status',
  forbidden_disclosure:
    'a disclosure puts something where it must not be, such as a second name or the status',
};
