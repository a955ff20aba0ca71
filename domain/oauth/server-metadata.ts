import { isTexts, type Json, type JsonObject } from '../shared/json.ts';
import { isSameIssuer, parseWebAddress } from '../shared/web-address.ts';

/** What we need of another server's metadata (RFC 8414 section 2, OpenID Connect Discovery 1.0 section 3). */
export type ServerMetadata = {
  readonly issuer: string;
  readonly authorizationEndpoint: string | undefined;
  readonly tokenEndpoint: string | undefined;
  readonly jwksUri: string | undefined;
  readonly userinfoEndpoint: string | undefined;
  readonly clientAuthenticationMethods: readonly string[];
  /** Whether its authorization responses carry `iss` (RFC 9207 section 3). */
  readonly namesItselfInResponses: boolean;
};

export type MetadataFault = 'wrong_issuer' | 'bad_metadata';

const MAX_ADDRESS_LENGTH = 2048;
const MAX_METHODS = 50;

/**
 * Where an issuer publishes its metadata, in the order of trial: OpenID Connect Discovery 1.0 section 4.1 appends
 * the well-known path, RFC 8414 section 3.1 inserts it.
 * @returns none for what cannot be an issuer (RFC 8414 section 2).
 */
export function metadataAddresses(issuer: string): readonly string[] {
  const url = parseAddress(issuer);
  // RFC 8414 section 2: neither query nor fragment. An empty one would vanish in the parsed form.
  if (url === undefined || /[?#]/.test(issuer)) return [];
  const path = url.pathname.replace(/\/$/, '');
  return [`${url.origin}${path}/.well-known/openid-configuration`, `${url.origin}/.well-known/oauth-authorization-server${path}`];
}

/** @returns the metadata, or why they cannot be used. */
export function parseServerMetadata(document: JsonObject, issuer: string): ServerMetadata | MetadataFault {
  // RFC 8414 section 3.3, OpenID Connect Discovery 1.0 section 4.3: equal character by character, once both are URIs.
  const named = document['issuer'];
  if (typeof named !== 'string' || !isSameIssuer(named, issuer)) return 'wrong_issuer';
  const methods = document['token_endpoint_auth_methods_supported'];
  const metadata = {
    issuer,
    authorizationEndpoint: document['authorization_endpoint'],
    tokenEndpoint: document['token_endpoint'],
    jwksUri: document['jwks_uri'],
    userinfoEndpoint: document['userinfo_endpoint'],
    // RFC 8414 section 2: what an absent list means.
    clientAuthenticationMethods: methods === undefined ? ['client_secret_basic'] : methods,
    namesItselfInResponses: document['authorization_response_iss_parameter_supported'] === true,
  };
  const { authorizationEndpoint, tokenEndpoint, jwksUri, userinfoEndpoint, clientAuthenticationMethods } = metadata;
  if (!isEndpoint(authorizationEndpoint, issuer) || !isEndpoint(tokenEndpoint, issuer)) return 'bad_metadata';
  if (!isEndpoint(jwksUri, issuer) || !isEndpoint(userinfoEndpoint, issuer)) return 'bad_metadata';
  if (!isTexts(clientAuthenticationMethods)) return 'bad_metadata';
  if (clientAuthenticationMethods.length > MAX_METHODS) return 'bad_metadata';
  const endpoints = { authorizationEndpoint, tokenEndpoint, jwksUri, userinfoEndpoint };
  return { ...metadata, ...endpoints, clientAuthenticationMethods };
}

/** Absent, or an address that is no weaker than the issuer's: the one who is at https does not send us to http. */
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
