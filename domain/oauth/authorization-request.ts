import { defined } from '../shared/defined.ts';
import { Failure } from '../shared/failure.ts';
import type { JsonObject } from '../shared/json.ts';
import { isRedirectAddress } from '../shared/redirect-address.ts';
import { isChallenge } from './pkce.ts';
import { invalidDetailsError, parseDetails } from './token-request.ts';

/** A pushed authorization request (RFC 9126, OpenID4VCI 1.0 section 5.1). */
export type AuthorizationRequest = {
  readonly clientId: string;
  /** The final destination of the browser; absent only in an interactive authorization without one. */
  readonly redirectUri?: string;
  /** True if the address is registered for the client, which authenticated. */
  readonly isRegisteredRedirect?: boolean;
  /** Returned to the wallet unchanged. */
  readonly state?: string;
  /** Absent only in an interactive authorization without a web step. */
  readonly codeChallenge?: string;
  readonly issuerState?: string;
  /** Configurations that the wallet requested by `authorization_details` or by scope. */
  readonly credentialConfigurationIds: readonly string[];
  /** True if `authorization_details` were used: the token response must then contain identifiers. */
  readonly byDetails: boolean;
  /** The scope values that match a configuration; absent if there are none. */
  readonly scope?: string;
  /** Request parameters for display to the operator; absent in requests of earlier releases. */
  readonly queries?: JsonObject;
};

export type RequestableConfiguration = { readonly id: string; readonly scope: string };

/** Parameters that the request must contain. */
export type RequiredParameters = { readonly redirectUri: boolean; readonly codeChallenge: boolean };

/** Parameters of authorization requests in the specifications, without those of client authentication. */
const REQUEST_PARAMETERS = [
  'response_type',
  'response_mode',
  'client_id',
  'redirect_uri',
  'scope',
  'state',
  'code_challenge',
  'code_challenge_method',
  'dpop_jkt',
  'resource',
  'issuer_state',
  'interaction_types_supported',
] as const;

const MAX_STATE_LENGTH = 1024;
/** Limit of a single parameter. Parameters are stored until the last token of the grant has expired. */
const MAX_PARAMETER_LENGTH = 4096;
const MAX_DETAILS = 30;
const MAX_DETAILS_LENGTH = 16_384;
/** A session tracks issued configurations with one bit each. */
const MAX_CONFIGURATIONS = 30;

type RequestContext = {
  readonly issuer: string;
  readonly configurations: readonly RequestableConfiguration[];
  /** Configuration ids of the offer that `issuer_state` refers to; absent without such an offer. */
  readonly offered?: readonly string[];
};

/**
 * Parses a pushed or interactive authorization request. Unknown parameters and unknown scope values are ignored (OpenID4VCI 1.0 section
 * 5.1.2), as well as scope values outside the offer: some wallets always send all supported scopes.
 * @param required parameters for an interactive authorization; optional ones are validated if present.
 * @throws Failure `invalid_request`, `request_not_supported`, `unsupported_response_type`, `invalid_scope`,
 * `invalid_authorization_details`, `invalid_target`.
 */
export function parseAuthorizationRequest(
  form: Readonly<Record<string, string>>,
  context: RequestContext,
  required: RequiredParameters = { redirectUri: true, codeChallenge: true },
): AuthorizationRequest {
  const invalid = (message: string) => new Failure('invalid_request', message);
  // RFC 9126 section 2.1
  if (form['request_uri'] !== undefined) throw invalid('request_uri cannot be pushed');
  // RFC 9101 section 7
  if (form['request'] !== undefined) throw new Failure('request_not_supported', 'send the parameters themselves');
  const tooLongName = REQUEST_PARAMETERS.find((name) => (form[name] ?? '').length > MAX_PARAMETER_LENGTH);
  if (tooLongName !== undefined) throw invalid(`${tooLongName} is too long`);
  const clientId = form['client_id'];
  if (clientId === undefined) throw invalid('client_id is missing');
  if (form['response_type'] === undefined) throw invalid('response_type is missing');
  // RFC 6749 section 4.1.2.1
  if (form['response_type'] !== 'code') throw new Failure('unsupported_response_type', 'only the response type code is supported');
  const { response_mode: responseMode } = form;
  // OAuth 2.0 Multiple Response Type Encoding Practices section 2.1: an unsupported mode is an error
  if (responseMode !== undefined && responseMode !== 'query') throw invalid('only the response mode query is supported');
  const redirectUri = form['redirect_uri'];
  if (redirectUri === undefined ? required.redirectUri : !isRedirectAddress(redirectUri)) {
    throw invalid('redirect_uri must be absolute, without fragment, and https, a private scheme with a dot or a known scheme of wallets');
  }
  const { code_challenge: codeChallenge, code_challenge_method: method } = form;
  const isChallenged = required.codeChallenge || codeChallenge !== undefined || method !== undefined;
  // RFC 7636 section 4.4.1, HAIP 1.0 section 4
  if (isChallenged && (!isChallenge(codeChallenge) || method !== 'S256')) {
    throw invalid('a code_challenge with code_challenge_method S256 is required');
  }
  // RFC 8707 section 2
  if (form['resource'] !== undefined && form['resource'] !== context.issuer) {
    throw new Failure('invalid_target', 'resource is not this credential issuer');
  }
  const { state, issuer_state: issuerState } = form;
  if (state !== undefined && state.length > MAX_STATE_LENGTH) throw invalid('state is too long');
  const { authorization_details: detailsText } = form;
  if (detailsText !== undefined && detailsText.length > MAX_DETAILS_LENGTH) {
    throw invalidDetailsError(`authorization_details has more than ${MAX_DETAILS_LENGTH} characters`);
  }
  const details = parseDetails(detailsText, context.issuer, MAX_DETAILS);
  return {
    clientId,
    ...defined({ redirectUri, codeChallenge, state, issuerState }),
    ...parseRequestedCredentials(form, details, context),
    queries: requestParametersOf(form, details),
  };
}

function requestParametersOf(form: Readonly<Record<string, string>>, details: Details): JsonObject {
  const entries = REQUEST_PARAMETERS.filter((name) => form[name] !== undefined).map((name) => [name, form[name]]);
  return { ...Object.fromEntries(entries), ...defined({ authorization_details: details }) };
}

type Details = readonly JsonObject[] | undefined;
type RequestedCredentials = Pick<AuthorizationRequest, 'credentialConfigurationIds' | 'byDetails' | 'scope'>;

function parseRequestedCredentials(
  form: Readonly<Record<string, string>>,
  details: Details,
  { configurations, offered }: RequestContext,
): RequestedCredentials {
  const detailedIds = parseDetailedIds(details, configurations);
  const values = new Set((form['scope'] ?? '').split(' '));
  const supported = configurations.filter(({ scope }) => values.has(scope));
  if (detailedIds.length === 0 && supported.length === 0) {
    throw new Failure('invalid_scope', 'name a credential by scope or authorization_details');
  }
  const scopedConfigurations = offered === undefined ? supported : supported.filter(({ id }) => offered.includes(id));
  if (detailedIds.length === 0 && scopedConfigurations.length === 0) {
    throw new Failure('invalid_request', 'scope contains no credential of the offer of issuer_state');
  }
  const scope = [...new Set(scopedConfigurations.map((configuration) => configuration.scope))].join(' ');
  // OpenID4VCI 1.0 section 5.1.2: details and scopes are independent requests, and details win if both name a configuration
  const ids = [...new Set([...detailedIds, ...scopedConfigurations.map(({ id }) => id)])];
  if (ids.length > MAX_CONFIGURATIONS) throw new Failure('invalid_scope', `at most ${MAX_CONFIGURATIONS} credentials in one request`);
  return { credentialConfigurationIds: ids, byDetails: detailedIds.length > 0, ...(scope === '' ? {} : { scope }) };
}

/** RFC 9396 section 5, OpenID4VCI 1.0 section 5.1.1. */
function parseDetailedIds(details: Details, configurations: readonly RequestableConfiguration[]): readonly string[] {
  return (details ?? []).map(({ credential_configuration_id: id }) => {
    if (configurations.some((configuration) => configuration.id === id)) return String(id);
    throw invalidDetailsError('the issuer has no such credential configuration');
  });
}
