import { isStringArray, type Json, type JsonObject } from '../shared/json.ts';
import { isSameIssuer, parseWebAddress } from '../shared/web-address.ts';

/** The properties of another server's metadata that we use (RFC 8414 section 2, OpenID Connect Discovery 1.0 section 3). */
export type ServerMetadata = {
  readonly issuer: string;
  readonly authorizationEndpoint: string | undefined;
  readonly tokenEndpoint: string | undefined;
  readonly jwksUri: string | undefined;
  readonly userinfoEndpoint: string | undefined;
  readonly clientAuthenticationMethods: readonly string[];
  /** True if its authorization responses contain `iss` (RFC 9207 section 3). */
  readonly namesItselfInResponses: boolean;
};

export type MetadataFault = 'wrong_issuer' | 'bad_metadata';

const MAX_ADDRESS_LENGTH = 2048;
const MAX_METHODS = 50;

/**
 * Metadata URLs of an issuer, in the order of requests: OpenID Connect Discovery 1.0 section 4.1 appends the well-known path, RFC 8414
 * section 3.1 inserts it.
 * @returns an empty list for an invalid issuer (RFC 8414 section 2).
 */
export function metadataAddresses(issuer: string): readonly string[] {
  const url = parseAddress(issuer);
  // RFC 8414 section 2: neither query nor fragment. The parser would drop an empty one.
  if (url === undefined || /[?#]/.test(issuer)) return [];
  const path = url.pathname.replace(/\/$/, '');
  return [`${url.origin}${path}/.well-known/openid-configuration`, `${url.origin}/.well-known/oauth-authorization-server${path}`];
}

/** @returns the metadata, or the reason why they are unusable. */
export function parseServerMetadata(document: JsonObject, issuer: string): ServerMetadata | MetadataFault {
  // RFC 8414 section 3.3, OpenID Connect Discovery 1.0 section 4.3: equal character by character after normalization.
  const statedIssuer = document['issuer'];
  if (typeof statedIssuer !== 'string' || !isSameIssuer(statedIssuer, issuer)) return 'wrong_issuer';
  const methods = document['token_endpoint_auth_methods_supported'];
  const metadata = {
    issuer,
    authorizationEndpoint: document['authorization_endpoint'],
    tokenEndpoint: document['token_endpoint'],
    jwksUri: document['jwks_uri'],
    userinfoEndpoint: document['userinfo_endpoint'],
    // RFC 8414 section 2: the default for an absent list.
    clientAuthenticationMethods: methods === undefined ? ['client_secret_basic'] : methods,
    namesItselfInResponses: document['authorization_response_iss_parameter_supported'] === true,
  };
  const { authorizationEndpoint, tokenEndpoint, jwksUri, userinfoEndpoint, clientAuthenticationMethods } = metadata;
  if (!isEndpoint(authorizationEndpoint, issuer) || !isEndpoint(tokenEndpoint, issuer)) return 'bad_metadata';
  if (!isEndpoint(jwksUri, issuer) || !isEndpoint(userinfoEndpoint, issuer)) return 'bad_metadata';
  if (!isStringArray(clientAuthenticationMethods)) return 'bad_metadata';
  if (clientAuthenticationMethods.length > MAX_METHODS) return 'bad_metadata';
  const endpoints = { authorizationEndpoint, tokenEndpoint, jwksUri, userinfoEndpoint };
  return { ...metadata, ...endpoints, clientAuthenticationMethods };
}

/** An endpoint may be absent; an issuer with https must not refer to endpoints with http. */
function isEndpoint(value: Json | undefined, issuer: string): value is string | undefined {
  if (value === undefined) return true;
  if (typeof value !== 'string') return false;
  const url = parseAddress(value);
  // RFC 6749 sections 3.1 and 3.2: no fragment.
  if (url === undefined || value.includes('#')) return false;
  return url.protocol === 'https:' || issuer.startsWith('http:');
}

/** An http or https address without credentials. */
function parseAddress(text: string): URL | undefined {
  return text.length > MAX_ADDRESS_LENGTH || /[\s\\]/.test(text) ? undefined : parseWebAddress(text);
}
