import { object, z } from 'zod';
import { NOTIFICATION_EVENTS } from '../../../domain/issuance/notification.ts';
import { AUTHORIZATION_CODE_GRANT, PRE_AUTHORIZED_CODE_GRANT, REFRESH_TOKEN_GRANT } from '../../../domain/oauth/token-request.ts';

/**
 * Parameters of wallets and browsers for the API document. The use cases validate them, so that errors are reported by the rules of the
 * protocols.
 */
const text = z.string();
/** Example of a value from the response of a previous call. */
export const EXAMPLE_HANDLE = 'Zm9yLXRoZS1leGFtcGxl.d2hhdC1hLWNhbGwtYmVmb3JlLWFuc3dlcmVk';
export const EXAMPLE_REQUEST_URI = `urn:ietf:params:oauth:request_uri:${EXAMPLE_HANDLE}`;

const handle = z.string().regex(/^[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{20,100}$/);
const requestUri = z
  .string()
  .max(512)
  .regex(/^urn:ietf:params:oauth:request_uri:[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{20,100}$/)
  .describe('From the response to the pushed request, before its expiry');

/** RFC 9126 section 4 */
export const AUTHORIZE_QUERY = object({ client_id: text.max(2048), request_uri: requestUri });

/** OpenID Connect Core 1.0 section 3.1.2.5 */
export const RETURN_QUERY = object({
  auth_session: handle.describe('value of the address of the page'),
  error: text.max(512).optional().describe('set when the user gave up'),
});

/** Client assertion of wallets that `walletClients` registers (RFC 7523 section 2.2). */
const assertion = {
  client_assertion_type: text.optional().describe('`urn:ietf:params:oauth:client-assertion-type:jwt-bearer`, with `client_assertion`'),
  client_assertion: text.optional().describe('A JWT by a registered key of the client'),
};
const request = {
  ...assertion,
  response_type: z.literal('code'),
  client_id: text.min(1),
  redirect_uri: text.min(1).max(2048),
  code_challenge: z.string().regex(/^[A-Za-z0-9_-]{43}$/),
  code_challenge_method: z.literal('S256'),
  scope: text.max(4096).optional().describe('Requested credentials, as in `authorization_details`'),
  state: text.max(1024).optional(),
  issuer_state: text.max(4096).optional().describe('Value of the offer'),
  resource: text.optional(),
  dpop_jkt: text.optional(),
};
const details = { authorization_details: text.optional().describe('A JSON array (RFC 9396 section 2)') };
const index = z.int().min(0).max(1_000_000);
const requestedDetails = {
  authorization_details: z
    .union([
      text,
      z.array(
        object({
          type: z.literal('openid_credential'),
          credential_configuration_id: text.optional(),
          claims: z
            .array(object({ path: z.array(z.union([text, index, z.null()])).min(1) }).catchall(text))
            .min(1)
            .optional(),
          locations: z.array(text).optional(),
        }).catchall(text),
      ),
    ])
    .optional(),
};
export const PUSHED_FORM = object({ ...request, ...details }).catchall(text);
export const PUSHED_JSON = object({ ...request, ...requestedDetails }).catchall(text);

const redemption = {
  ...assertion,
  grant_type: z.enum([AUTHORIZATION_CODE_GRANT, REFRESH_TOKEN_GRANT, PRE_AUTHORIZED_CODE_GRANT]),
  code: text.optional(),
  client_id: text.optional(),
  redirect_uri: text.optional().describe('Value of the authorization request'),
  code_verifier: text.optional(),
  'pre-authorized_code': text.optional(),
  tx_code: text.optional(),
  refresh_token: text.optional(),
  scope: text.optional(),
};
/** The chained server rejects pre-authorized codes, because its users log in. */
const chainedRedemption = { ...redemption, grant_type: z.enum([AUTHORIZATION_CODE_GRANT, REFRESH_TOKEN_GRANT]) };
export const TOKEN_FORMS = {
  'built-in': {
    json: object({ ...redemption, ...requestedDetails }).catchall(text),
    form: object({ ...redemption, ...details }).catchall(text),
  },
  chained: {
    json: object({ ...chainedRedemption, ...requestedDetails }).catchall(text),
    form: object({ ...chainedRedemption, ...details }).catchall(text),
  },
};

const encryption = {
  credential_response_encryption: z.record(z.string(), z.json()).optional().describe('`jwk`, `enc` and, for a compressed response, `zip`'),
};
/** OpenID4VCI 1.0 section 8.2 */
export const CREDENTIAL_JSON = object({
  credential_configuration_id: text.optional().describe('Id of an offer or of `scope`'),
  credential_identifier: text
    .optional()
    .describe('Identifier in `authorization_details` of the token response, instead of `credential_configuration_id`'),
  proofs: z
    .record(z.string(), z.array(text))
    .optional()
    .describe('`jwt` or `attestation`, and an array of proofs; one credential is issued for each key'),
  ...encryption,
}).catchall(z.json());
/** OpenID4VCI 1.0 section 9.1 */
export const DEFERRED_JSON = object({ transaction_id: text.optional().describe('Needed'), ...encryption }).catchall(z.json());
/** OpenID4VCI 1.0 section 11.1 */
export const NOTIFICATION_JSON = object({
  notification_id: text.optional().describe('Required; value of the credential response'),
  event: z.enum(NOTIFICATION_EVENTS).optional().describe('Needed'),
  event_description: text.optional(),
}).catchall(z.json());

const decision = z.enum(['approve', 'deny']);
export const DECISION_FORM = object({ client_id: text, request_uri: requestUri, decision, decision_token: text }).catchall(text);
export const CONFIRMATION_FORM = object({ confirmation: handle, decision }).catchall(text);

/** RFC 9449 section 4.1, attestation-based client authentication section 6.1 */
export const CLIENT_HEADERS = object({
  DPoP: text.optional().describe('DPoP proof of the key that tokens are bound to'),
  'OAuth-Client-Attestation': text.optional(),
  'OAuth-Client-Attestation-PoP': text.optional(),
});
