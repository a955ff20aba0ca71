import { defined } from '../shared/defined.ts';
import { Failure } from '../shared/failure.ts';
import type { JsonObject } from '../shared/json.ts';
import { isRedirectAddress } from '../shared/redirect-address.ts';
import { isChallenge } from './pkce.ts';
import { parseDetails, refusedDetails } from './token-request.ts';

/** An authorization request as it was pushed (RFC 9126, OpenID4VCI 1.0 section 5.1). */
export type AuthorizationRequest = {
  readonly clientId: string;
  /** Where the browser goes in the end; absent only in an interactive authorization without one. */
  readonly redirectUri?: string;
  /** Whether that address is registered for the client, which proved who it is. */
  readonly isRegisteredRedirect?: boolean;
  /** Echoed to the wallet as it came. */
  readonly state?: string;
  /** Absent only in an interactive authorization without a web step. */
  readonly codeChallenge?: string;
  readonly issuerState?: string;
  /** What the wallet asked for, by details and by scope. */
  readonly credentialConfigurationIds: readonly string[];
  /** Asked by `authorization_details`: the token response must then name identifiers. */
  readonly byDetails: boolean;
  /** The scope values that named something; absent when there were none. */
  readonly scope?: string;
  /** What it said, for the operator; absent in what an earlier release stored. */
  readonly queries?: JsonObject;
};

export type RequestableConfiguration = { readonly id: string; readonly scope: string };

/** What a request cannot do without. */
export type RequestNeeds = { readonly redirectUri: boolean; readonly codeChallenge: boolean };

/** Parameters that a specification gives an authorization request; how the client proves who it is belongs to none of them. */
const QUERIES = [
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
/** Characters of one of the others. All of them are kept until the last token of the grant is over. */
const MAX_QUERY_LENGTH = 4096;
const MAX_DETAILS = 30;
const MAX_DETAILS_LENGTH = 16_384;
/** A session counts what it issued by a bit per configuration. */
const MAX_CONFIGURATIONS = 30;

type RequestContext = {
  readonly issuer: string;
  readonly configurations: readonly RequestableConfiguration[];
  /** Configuration ids of the offer that `issuer_state` refers to; absent without such an offer. */
  readonly offered?: readonly string[];
};

/**
 * Reads an authorization request that was pushed or is interactive. Unknown parameters and unknown scope values are ignored
 * (OpenID4VCI 1.0 section 5.1.2), and so are scope values outside the offer: some wallets always send all supported scopes.
 * @param needs of an interactive authorization: what is not needed may be absent, but not wrong.
 * @throws Failure `invalid_request`, `request_not_supported`, `unsupported_response_type`, `invalid_scope`,
 *   `invalid_authorization_details`, `invalid_target`.
 */
export function parseAuthorizationRequest(
  form: Readonly<Record<string, string>>,
  context: RequestContext,
  needs: RequestNeeds = { redirectUri: true, codeChallenge: true },
): AuthorizationRequest {
  const invalid = (message: string) => new Failure('invalid_request', message);
  // RFC 9126 section 2.1
  if (form['request_uri'] !== undefined) throw invalid('request_uri cannot be pushed');
  // RFC 9101 section 7
  if (form['request'] !== undefined) throw new Failure('request_not_supported', 'send the parameters themselves');
  const long = QUERIES.find((name) => (form[name] ?? '').length > MAX_QUERY_LENGTH);
  if (long !== undefined) throw invalid(`${long} is too long`);
  const clientId = form['client_id'];
  if (clientId === undefined) throw invalid('client_id is missing');
  if (form['response_type'] === undefined) throw invalid('response_type is missing');
  // RFC 6749 section 4.1.2.1
  if (form['response_type'] !== 'code') throw new Failure('unsupported_response_type', 'only the response type code is supported');
  const { response_mode: responseMode } = form;
  // OAuth 2.0 Multiple Response Type Encoding Practices section 2.1: what is not supported is an error
  if (responseMode !== undefined && responseMode !== 'query') throw invalid('only the response mode query is supported');
  const redirectUri = form['redirect_uri'];
  if (redirectUri === undefined ? needs.redirectUri : !isRedirectAddress(redirectUri)) {
    throw invalid('redirect_uri must be absolute, without fragment, and https, a private scheme with a dot or a known scheme of wallets');
  }
  const { code_challenge: codeChallenge, code_challenge_method: method } = form;
  const isChallenged = needs.codeChallenge || codeChallenge !== undefined || method !== undefined;
  // RFC 7636 section 4.4.1, HAIP 1.0 section 4
  if (isChallenged && (!isChallenge(codeChallenge) || method !== 'S256')) {
    throw invalid('a code_challenge with code_challenge_method S256 is needed');
  }
  // RFC 8707 section 2
  if (form['resource'] !== undefined && form['resource'] !== context.issuer) {
    throw new Failure('invalid_target', 'resource is not this credential issuer');
  }
  const { state, issuer_state: issuerState } = form;
  if (state !== undefined && state.length > MAX_STATE_LENGTH) throw invalid('state is too long');
  const { authorization_details: detailsText } = form;
  if (detailsText !== undefined && detailsText.length > MAX_DETAILS_LENGTH) {
    throw refusedDetails(`authorization_details has more than ${MAX_DETAILS_LENGTH} characters`);
  }
  const details = parseDetails(detailsText, context.issuer, MAX_DETAILS);
  return {
    clientId,
    ...defined({ redirectUri, codeChallenge, state, issuerState }),
    ...parseWanted(form, details, context),
    queries: queriesOf(form, details),
  };
}

function queriesOf(form: Readonly<Record<string, string>>, details: Details): JsonObject {
  const said = QUERIES.filter((name) => form[name] !== undefined).map((name) => [name, form[name]]);
  return { ...Object.fromEntries(said), ...defined({ authorization_details: details }) };
}

type Details = readonly JsonObject[] | undefined;
type Wanted = Pick<AuthorizationRequest, 'credentialConfigurationIds' | 'byDetails' | 'scope'>;

function parseWanted(form: Readonly<Record<string, string>>, details: Details, { configurations, offered }: RequestContext): Wanted {
  const detailed = parseNamed(details, configurations);
  const values = new Set((form['scope'] ?? '').split(' '));
  const supported = configurations.filter(({ scope }) => values.has(scope));
  if (detailed.length === 0 && supported.length === 0) {
    throw new Failure('invalid_scope', 'name a credential by scope or authorization_details');
  }
  const named = offered === undefined ? supported : supported.filter(({ id }) => offered.includes(id));
  if (detailed.length === 0 && named.length === 0) {
    throw new Failure('invalid_request', 'scope names no credential of the offer that issuer_state refers to');
  }
  const scope = [...new Set(named.map((configuration) => configuration.scope))].join(' ');
  // OpenID4VCI 1.0 section 5.1.2: each says for itself what is wanted, and where both name one the details say how
  const ids = [...new Set([...detailed, ...named.map(({ id }) => id)])];
  if (ids.length > MAX_CONFIGURATIONS) throw new Failure('invalid_scope', `at most ${MAX_CONFIGURATIONS} credentials in one request`);
  return { credentialConfigurationIds: ids, byDetails: detailed.length > 0, ...(scope === '' ? {} : { scope }) };
}

/** RFC 9396 section 5, OpenID4VCI 1.0 section 5.1.1. */
function parseNamed(details: Details, configurations: readonly RequestableConfiguration[]): readonly string[] {
  return (details ?? []).map(({ credential_configuration_id: id }) => {
    if (configurations.some((configuration) => configuration.id === id)) return String(id);
    throw refusedDetails('the issuer has no such credential configuration');
  });
}
