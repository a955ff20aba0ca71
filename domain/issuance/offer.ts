import { object, z } from 'zod';
import { PRE_AUTHORIZED_CODE_GRANT } from '../oauth/token-request.ts';
import type { SessionRequest } from '../sessions/session.ts';
import { SessionReference } from '../sessions/session-search.ts';
import { listUpTo, Reference, wholeNumber } from '../shared/bounds.ts';
import { invalidInput } from '../shared/failure.ts';
import { InvocationUri, invocationUri } from '../shared/invocation-uri.ts';
import { isJsonObject, type JsonObject } from '../shared/json.ts';
import { normalUri } from '../shared/uri.ts';
import { WebhookConfig } from '../webhooks/webhook.ts';

const ClaimsSourceInput = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('inline').describe('The claims themselves'),
    claims: z
      .record(z.string(), z.json())
      .transform((value) => value as JsonObject)
      .describe('The claims; validated immediately against schema and format'),
  }),
  z.strictObject({
    type: z.literal('webhook').describe('Called when a wallet requests the credential'),
    webhook: WebhookConfig.describe('See `claims` among the webhooks'),
  }),
]);

/** True if a user can type the code exactly: wallets trim spaces. */
function isTypeable(code: string): boolean {
  return code === code.trim() && !/[\p{C}\p{Zl}\p{Zp}]/u.test(code);
}

/** Bit i of a session's mask stands for the i-th configuration, which limits the number of configurations. */
const MAX_CONFIGURATIONS = 30;

export const OfferRequest = object({
  response_type: z.enum(['uri', 'dc-api']).describe('`dc-api` adds the offer for the Digital Credentials API to the response'),
  flow: z
    .enum(['authorization_code', 'pre_authorized_code'])
    .describe(
      '`pre_authorized_code`: any holder of the offer, and of the transaction code if there is one, gets the credential. ' +
        '`authorization_code`: the wallet uses an authorization server first; the page of the built-in server asks for ' +
        'approval and authenticates no user',
    ),
  credentialConfigurationIds: listUpTo(Reference, MAX_CONFIGURATIONS).describe(
    'Ids of the offered credential configurations, each once; at least one (OpenID4VCI 1.0 section 4.1.1)',
  ),
  credentialClaims: z
    .record(z.string(), ClaimsSourceInput)
    .optional()
    .describe(
      'Source of the claims, by configuration id. The first existing source is used, without merging: inline ' +
        'claims or webhook here, `claimsWebhook` of the configuration, its static claims',
    ),
  tx_code: z
    .string()
    .min(1)
    .max(256)
    .refine(isTypeable, 'no control characters, and no space at either end')
    .optional()
    .describe(
      'Transaction code that the user enters, for pre_authorized_code only: 1 to 256 characters, without control characters and without ' +
        'a space at either end, which wallets remove. Send it by another channel than the offer; the wallet gets its length and whether it consists of ' +
        'digits. After 5 wrong codes the offer becomes invalid, so four or more digits prevent guessing',
    ),
  tx_code_description: z
    .string()
    .max(300, 'at most 300 characters')
    .optional()
    .describe('Text for the user about the code, such as where it was sent'),
  authorization_server: z
    .string()
    .overwrite(normalUri)
    .max(2048)
    .optional()
    .describe(
      'Issuer of the authorization server for the wallet: `<PUBLIC_URL>/<tenant>`, `<PUBLIC_URL>/<tenant>/chained-as` ' +
        'or one of `authServers`; with pre_authorized_code only the first. Default: the server that the tenant ' +
        'prefers, and for configurations with `iaeActions` the first',
    ),
  notifyWebhook: WebhookConfig.optional().describe(
    'Called for notifications about the credentials of this offer, instead of `notificationWebhook` of their configurations',
  ),
  invocationUri: InvocationUri.optional().describe(
    'URI that starts the wallet: openid-credential-offer:// (default), haip-vci://, or the address of your wallet',
  ),
  reference: SessionReference.optional(),
  expiresIn: wholeNumber(30, 31_536_000)
    .optional()
    .describe('Seconds until the offer expires; at most the lifetime of sessions of the tenant'),
}).meta({ id: 'OfferRequest' });
export type OfferRequest = z.infer<typeof OfferRequest>;

/** The data that an offer request is validated against. */
export type OfferContext = {
  /** Credential configurations by id; `interactive` is true if `iaeActions` are required first. */
  readonly configurations: ReadonlyMap<string, { readonly interactive: boolean }>;
  /** Issuers of the authorization servers, the preferred one first. */
  readonly servers: readonly string[];
  readonly issuer: string;
};

/**
 * Validates rules that span several fields of an offer request. Claims are validated by their format elsewhere.
 * @throws Failure `invalid_input` with the path of the problem.
 */
export function assertOfferRequest(request: OfferRequest, context: OfferContext): void {
  assertTxCode(request);
  assertConfigurations(request, context);
  const ids = request.credentialConfigurationIds;
  for (const id of Object.keys(request.credentialClaims ?? {})) {
    if (!ids.includes(id)) throw invalidInput(`credentialClaims.${id}`, 'the offer has no such credential configuration');
  }
  const { authorization_server: server, flow } = request;
  if (flow === 'pre_authorized_code' && !context.servers.includes(context.issuer)) {
    throw invalidInput('flow', 'pre-authorized codes are redeemed at the built-in server, which is disabled');
  }
  if (server === undefined) return;
  if (!context.servers.includes(server)) throw invalidInput('authorization_server', `name one of ${context.servers.join(', ')}`);
  if (flow === 'pre_authorized_code' && server !== context.issuer) {
    throw invalidInput('authorization_server', `pre-authorized codes are redeemed at ${context.issuer}`);
  }
}

function assertTxCode({ flow, tx_code, tx_code_description }: OfferRequest): void {
  if (flow === 'authorization_code' && (tx_code !== undefined || tx_code_description !== undefined)) {
    throw invalidInput('tx_code', 'a transaction code is only allowed in the pre-authorized code flow');
  }
  if (tx_code === undefined && tx_code_description !== undefined) {
    throw invalidInput('tx_code_description', 'tx_code is required with this property');
  }
}

function assertConfigurations(
  { credentialConfigurationIds: ids, flow }: OfferRequest,
  { configurations, servers, issuer }: OfferContext,
): void {
  ids.forEach((id, index) => {
    const path = `credentialConfigurationIds.${index}`;
    const configuration = configurations.get(id);
    if (configuration === undefined) throw invalidInput(path, `there is no credential configuration ${JSON.stringify(id)}`);
    if (ids.indexOf(id) !== index) throw invalidInput(path, 'this id is listed twice');
    if (configuration.interactive && !servers.includes(issuer)) {
      throw invalidInput(path, `${id} has iaeActions, which require the built-in server; it is disabled`);
    }
    // The actions precede the issuance; the pre-authorized code flow has no step for them.
    if (configuration.interactive && flow === 'pre_authorized_code') {
      throw invalidInput('flow', `${id} has iaeActions, so it is issued by authorization_code only`);
    }
  });
}

/** The grant of an offer: a pre-authorized code, or the `issuer_state` that identifies the session. */
export type OfferGrant = { readonly preAuthorizedCode: string } | { readonly issuerState: string };

/**
 * The credential offer as the wallet fetches it (OpenID4VCI 1.0 section 4.1.1).
 * @param servers issuers of the authorization servers; the offer names its server only if there are several.
 */
export function composeOffer(issuer: string, request: OfferRequest, grant: OfferGrant, servers: readonly string[]): JsonObject {
  const isPreAuthorized = 'preAuthorizedCode' in grant;
  const requestedServer = request.authorization_server ?? (isPreAuthorized ? issuer : undefined);
  const server = servers.length > 1 && requestedServer !== undefined ? { authorization_server: requestedServer } : {};
  const grants: JsonObject = isPreAuthorized
    ? {
        [PRE_AUTHORIZED_CODE_GRANT]: {
          'pre-authorized_code': grant.preAuthorizedCode,
          ...(request.tx_code === undefined ? {} : { tx_code: describeTxCode(request.tx_code, request.tx_code_description) }),
          ...server,
        },
      }
    : { authorization_code: { issuer_state: grant.issuerState, ...server } };
  return { credential_issuer: issuer, credential_configuration_ids: request.credentialConfigurationIds, grants };
}

/** Describes the transaction code for the input field of the wallet, without the code itself. */
function describeTxCode(code: string, description: string | undefined): JsonObject {
  return {
    input_mode: /^[0-9]+$/.test(code) ? 'numeric' : 'text',
    length: [...code].length,
    ...(description === undefined ? {} : { description }),
  };
}

/** OpenID4VCI 1.0 section 4.1.2: the scheme for an unknown wallet. */
const INVOCATION_URI = 'openid-credential-offer://';

/** OpenID4VCI 1.0 section 4.1.3: the link, by reference. @param base scheme or universal link of a wallet. */
export function offerLink(offerUri: string, base = INVOCATION_URI): string {
  return invocationUri(base, { credential_offer_uri: offerUri });
}

/** True if several wallets can redeem the offer, because each user logs in. A pre-authorized code is for one wallet. */
export function isSharedOffer(request: SessionRequest | null | undefined): boolean {
  if (request?.kind !== 'issuance' || request.offerUrl === '') return false;
  const { grants } = request.offer;
  return !(isJsonObject(grants) && Object.hasOwn(grants, PRE_AUTHORIZED_CODE_GRANT));
}
