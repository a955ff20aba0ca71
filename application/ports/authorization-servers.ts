import type { ForeignAlgorithm } from '../../domain/oauth/foreign-token.ts';
import type { ServerMetadata } from '../../domain/oauth/server-metadata.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { RemoteFault } from './remote.ts';

/** Reasons why an external authorization server cannot be used. */
export type AuthorizationServerFault =
  /** The configured issuer is not an address without query, fragment and credentials. */
  | 'bad_issuer'
  | RemoteFault
  | 'bad_status'
  | 'not_json'
  /** The metadata name another issuer (RFC 8414 section 3.3). */
  | 'wrong_issuer'
  /** The metadata lack a required property or name an address that may not be used. */
  | 'bad_metadata'
  | 'bad_keys'
  /** The server does not support the authentication method of this client. */
  | 'client_authentication'
  /** The server answered a token request with an OAuth error; see `error`. */
  | 'refused'
  /** The server answered a token request with something that is not a token response. */
  | 'bad_answer';

export class AuthorizationServerError extends Error {
  readonly fault: AuthorizationServerFault;
  /** The `error` of an OAuth error response with `refused`; `userinfo` and the problem if the userinfo request failed. */
  readonly error: string | undefined;

  /** @param message for the operator. Never contains a code, a token, a secret or text of the server. */
  constructor(fault: AuthorizationServerFault, message: string, options: { readonly error?: string; readonly cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.name = 'AuthorizationServerError';
    this.fault = fault;
    this.error = options.error;
  }
}

/** A token whose signature and registered claims are valid. */
export type VerifiedToken = {
  /** `typ` of the header in lower case without `application/`. */
  readonly type: string | undefined;
  readonly algorithm: ForeignAlgorithm;
  readonly claims: JsonObject;
};

export type TokenExpectations = {
  readonly tenantId: TenantId | undefined;
  /** Value that `aud` must equal or contain. */
  readonly audience: string;
  /** Accepted `typ` values in lower case, without `application/`; `undefined` accepts an absent one. */
  readonly types: readonly (string | undefined)[];
  readonly now: Date;
};

export type CodeExchange = {
  readonly tenantId: TenantId;
  readonly code: string;
  readonly redirectUri: string;
  readonly codeVerifier: string;
  readonly clientId: string;
  /** Absent for a public client. */
  readonly clientSecret?: string | undefined;
};

export type TokenAnswer = { readonly idToken: string; readonly accessToken: string | undefined };

export type UserinfoExpectations = {
  readonly tenantId: TenantId;
  readonly clientId: string;
  /** `sub` of the ID token. */
  readonly subject: string;
  readonly accessToken: string;
  readonly now: Date;
};

export type LoginExpectations = {
  readonly tenantId: TenantId;
  readonly clientId: string;
  readonly nonce: string;
  readonly accessToken: string | undefined;
  readonly now: Date;
};

/**
 * External OpenID providers and OAuth authorization servers. Metadata and keys are cached for each tenant, since tenants may have
 * different outbound rules; concurrent callers share one call. Calls without a tenant are made for the service itself.
 *
 * `issuer` is always one that the tenant configured and never one that a message names.
 */
export abstract class AuthorizationServers {
  /**
   * Reads OpenID Connect Discovery or RFC 8414 metadata.
   * @throws AuthorizationServerError
   */
  abstract discover(issuer: string, tenantId: TenantId | undefined): Promise<ServerMetadata>;

  /**
   * Verifies the signature by a key of this issuer, then `iss`, `aud`, `exp`, `nbf` and `iat`.
   * @throws ForeignTokenError when the token is invalid, AuthorizationServerError when it cannot be verified.
   */
  abstract verifyToken(issuer: string, token: string, expected: TokenExpectations): Promise<VerifiedToken>;

  /**
   * Redeems a code at the token endpoint (RFC 6749 section 4.1.3, RFC 7636 section 4.5). One attempt.
   * @throws AuthorizationServerError
   */
  abstract exchangeCode(issuer: string, exchange: CodeExchange): Promise<TokenAnswer>;

  /**
   * Obtains a token for the client itself and discards it (RFC 6749 section 4.4), to test the credentials.
   * @throws AuthorizationServerError when the server does not issue one.
   */
  abstract logInAsClient(issuer: string, client: { readonly clientId: string; readonly clientSecret: string }): Promise<void>;

  /**
   * Verifies an ID token (OpenID Connect Core 1.0 section 3.1.3.7) with `nonce` and, when present, `at_hash`.
   * @returns every claim; `sub` is a string.
   * @throws ForeignTokenError when the token is invalid, AuthorizationServerError when it cannot be verified.
   */
  abstract verifyIdToken(issuer: string, idToken: string, expected: LoginExpectations): Promise<JsonObject>;

  /**
   * Reads an access token that the token endpoint of this issuer just returned. Its audience is a resource server, not this service, so
   * `aud` is not checked; use `verifyToken` for a token that a wallet sends.
   * @returns every claim of a JWT that a key of this issuer signed; undefined for any other access token.
   * @throws AuthorizationServerError when it cannot be verified.
   */
  abstract readReceivedAccessToken(
    issuer: string,
    token: string,
    expected: { readonly tenantId: TenantId; readonly now: Date },
  ): Promise<JsonObject | undefined>;

  /**
   * Calls the userinfo endpoint (OpenID Connect Core 1.0 section 5.3), whose response is JSON or a JWT that the issuer signed.
   * @returns every claim, `sub` is the expected one; undefined for an issuer without such an endpoint.
   * @throws AuthorizationServerError whose `error` begins with `userinfo`.
   */
  abstract readUserinfo(issuer: string, expected: UserinfoExpectations): Promise<JsonObject | undefined>;
}
