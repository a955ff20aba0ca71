import { z } from 'zod';
import { PROTOCOL_CLAIMS } from '../formats/sd-jwt/claim-names.ts';
import { PRE_AUTHORIZED_CODE_GRANT } from '../oauth/token-request.ts';
import { Failure, invalidInput } from '../shared/failure.ts';
import type { JsonObject } from '../shared/json.ts';
import { WebhookConfig } from '../webhooks/webhook.ts';

const ClaimsSourceInput = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('inline'),
    claims: z.record(z.string(), z.json()).transform((value) => value as JsonObject),
  }),
  z.strictObject({ type: z.literal('webhook'), webhook: WebhookConfig }),
]);

/** Bit i of a session's mask stands for the i-th configuration, so an offer has at most this many. */
const MAX_CONFIGURATIONS = 30;

export const OfferRequest = z
  .object({
    response_type: z.enum(['uri', 'dc-api']),
    flow: z.enum(['authorization_code', 'pre_authorized_code']),
    credentialConfigurationIds: z.array(z.string().min(1).max(128)).min(1).max(MAX_CONFIGURATIONS),
    credentialClaims: z.record(z.string(), ClaimsSourceInput).optional(),
    tx_code: z
      .string()
      .regex(/^[\x21-\x7e]{4,64}$/, '4 to 64 printable characters without spaces')
      .optional(),
    tx_code_description: z.string().max(300, 'at most 300 characters').optional(),
    authorization_server: z.string().max(2048).optional(),
    notifyWebhook: z
      .undefined({ error: 'notifications are not supported by this release' })
      .optional()
      .describe('Not in this release'),
  })
  .meta({ id: 'OfferRequest' });
export type OfferRequest = z.infer<typeof OfferRequest>;

/**
 * Rules that span several fields of an offer request.
 * @throws Failure `invalid_input` with the path of the fault.
 */
export function checkOfferRequest(request: OfferRequest, known: ReadonlySet<string>, issuer: string): void {
  if (request.response_type === 'dc-api') {
    throw invalidInput(
      'response_type',
      'offers over the digital credentials API are not supported by this release',
    );
  }
  if (request.flow === 'authorization_code') {
    if (request.tx_code !== undefined || request.tx_code_description !== undefined) {
      throw invalidInput('tx_code', 'a transaction code belongs to the pre-authorized code flow');
    }
    throw invalidInput('flow', 'the authorization code flow is not supported by this release');
  }
  if (request.tx_code === undefined && request.tx_code_description !== undefined) {
    throw invalidInput('tx_code_description', 'there is no tx_code to describe');
  }
  const ids = request.credentialConfigurationIds;
  ids.forEach((id, index) => {
    if (!known.has(id))
      throw invalidInput(`credentialConfigurationIds.${index}`, 'there is no such credential configuration');
    if (ids.indexOf(id) !== index)
      throw invalidInput(`credentialConfigurationIds.${index}`, 'this id stands twice');
  });
  for (const [id, source] of Object.entries(request.credentialClaims ?? {})) {
    if (!ids.includes(id))
      throw invalidInput(`credentialClaims.${id}`, 'the offer has no such credential configuration');
    if (source.type === 'inline') assertFreeClaims(source.claims, `credentialClaims.${id}.claims`);
  }
  if (request.authorization_server !== undefined && request.authorization_server !== issuer) {
    throw invalidInput('authorization_server', `the only authorization server is ${issuer}`);
  }
}

/** @throws Failure `invalid_input` when claims about the subject would override a claim of the protocol. */
export function assertFreeClaims(claims: JsonObject, path: string): void {
  for (const name of Object.keys(claims)) {
    if (PROTOCOL_CLAIMS.has(name) || name === '_sd' || name === '...') {
      throw invalidInput(`${path}.${name}`, 'this claim is set by the issuer');
    }
  }
}

/** The credential offer as the wallet fetches it (OpenID4VCI 1.0 section 4.1.1). */
export function composeOffer(issuer: string, request: OfferRequest, code: string): JsonObject {
  return {
    credential_issuer: issuer,
    credential_configuration_ids: request.credentialConfigurationIds,
    grants: {
      [PRE_AUTHORIZED_CODE_GRANT]: {
        'pre-authorized_code': code,
        ...(request.tx_code === undefined
          ? {}
          : { tx_code: describeTxCode(request.tx_code, request.tx_code_description) }),
      },
    },
  };
}

/** What the wallet needs to ask its user for the code; never the code itself. */
function describeTxCode(code: string, description: string | undefined): JsonObject {
  return {
    input_mode: /^[0-9]+$/.test(code) ? 'numeric' : 'text',
    length: code.length,
    ...(description === undefined ? {} : { description }),
  };
}

/** OpenID4VCI 1.0 section 4.1.3: the link, by reference. */
export function offerLink(offerUri: string): string {
  return `openid-credential-offer://?credential_offer_uri=${encodeURIComponent(offerUri)}`;
}

/** @throws Failure `credential_request_denied` when a body of claims is not an object. */
export function requireClaims(value: unknown): JsonObject {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonObject;
  throw new Failure('credential_request_denied', 'the issuer has no data for this credential');
}
