import { z } from 'zod';

/**
 * What the API document says of parameters that wallets and browsers send. The use cases read them themselves, so that what
 * is wrong with them is said in the words of the protocols.
 */
const text = z.string();
/** In examples, of what a call before answered. */
export const EXAMPLE_HANDLE = 'Zm9yLXRoZS1leGFtcGxl.d2hhdC1hLWNhbGwtYmVmb3JlLWFuc3dlcmVk';
export const EXAMPLE_REQUEST_URI = `urn:ietf:params:oauth:request_uri:${EXAMPLE_HANDLE}`;

const handle = z.string().regex(/^[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{20,100}$/);
const requestUri = z
  .string()
  .max(512)
  .regex(/^urn:ietf:params:oauth:request_uri:[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{20,100}$/)
  .describe('As the pushed request was answered with, within its time');

/** RFC 9126 section 4 */
export const AUTHORIZE_QUERY = z.object({ client_id: text.max(2048), request_uri: requestUri });

/** OpenID Connect Core 1.0 section 3.1.2.5 */
export const RETURN_QUERY = z.object({
  auth_session: handle.describe('as it stood in the address of the page'),
  error: text.max(512).optional().describe('set when the user gave up'),
});

const request = {
  response_type: z.literal('code'),
  client_id: text.min(1),
  redirect_uri: text.min(1),
  code_challenge: z.string().regex(/^[A-Za-z0-9_-]{43}$/),
  code_challenge_method: z.literal('S256'),
  scope: text.optional().describe('Names credentials, as `authorization_details` do'),
  state: text.max(1024).optional(),
  issuer_state: text.optional().describe('Of the offer'),
  resource: text.optional(),
  dpop_jkt: text.optional(),
};
const details = { authorization_details: text.optional().describe('A JSON array (RFC 9396 section 2)') };
const wantedDetails = {
  authorization_details: z.union([text, z.array(z.record(z.string(), z.json()))]).optional(),
};
export const PUSHED_FORM = z.object({ ...request, ...details }).catchall(text);
export const PUSHED_JSON = z.object({ ...request, ...wantedDetails }).catchall(text);

const redemption = {
  grant_type: text.describe(
    '`authorization_code`, `refresh_token` or, at the built-in server, that of pre-authorized codes',
  ),
  code: text.optional(),
  client_id: text.optional(),
  redirect_uri: text.optional().describe('That of the authorization request'),
  code_verifier: text.optional(),
  'pre-authorized_code': text.optional(),
  tx_code: text.optional(),
  refresh_token: text.optional(),
  scope: text.optional(),
};
export const TOKEN_FORM = z.object({ ...redemption, ...details }).catchall(text);
export const TOKEN_JSON = z.object({ ...redemption, ...wantedDetails }).catchall(text);

const decision = z.enum(['approve', 'deny']);
export const DECISION_FORM = z
  .object({ client_id: text, request_uri: requestUri, decision, decision_token: text })
  .catchall(text);
export const CONFIRMATION_FORM = z.object({ confirmation: handle, decision }).catchall(text);

/** RFC 9449 section 4.1, attestation-based client authentication section 6.1 */
export const CLIENT_HEADERS = z.object({
  DPoP: text.optional().describe('A proof of the key that tokens are bound to'),
  'OAuth-Client-Attestation': text.optional(),
  'OAuth-Client-Attestation-PoP': text.optional(),
});
