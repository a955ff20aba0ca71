import type { ForeignAlgorithm } from '../../domain/oauth/foreign-token.ts';
import type { ServerMetadata } from '../../domain/oauth/server-metadata.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { RemoteFault } from './remote.ts';

/** Why another authorization server cannot be used. */
export type AuthorizationServerFault =
  /** The configured issuer is no address without query, fragment and credentials. */
  | 'bad_issuer'
  | RemoteFault
  | 'bad_status'
  | 'not_json'
  /** Its metadata name another issuer (RFC 8414 section 3.3). */
  | 'wrong_issuer'
  /** Its metadata lack what is needed, or name an address that may not be used. */
  | 'bad_metadata'
  | 'bad_keys'
  /** It does not take the way in which this client can authenticate. */
  | 'client_authentication'
  /** It answered a token request with an OAuth error; see `error`. */
  | 'refused'
  /** It answered a token request with something that is no token response. */
  | 'bad_answer';

export class AuthorizationServerError extends Error {
  readonly fault: AuthorizationServerFault;
  /** The `error` of an OAuth error response with `refused`; `userinfo`, and what is wrong with it, where that failed. */
  readonly error: string | undefined;

  /** @param message for the operator. Never a code, a token, a secret or text that the server wrote. */
  constructor(fault: AuthorizationServerFault, message: string, options: { readonly error?: string; readonly cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.name = 'AuthorizationServerError';
    this.fault = fault;
    this.error = options.error;
  }
}

/** A token whose signature and general claims were good. */
export type VerifiedToken = {
  /** `typ` of the header in lower case without `application/`. */
  readonly type: string | undefined;
  /** The signature algorithm that was used. */
  readonly algorithm: ForeignAlgorithm;
  /** Every claim. */
  readonly claims: JsonObject;
};

export type TokenExpectations = {
  readonly tenantId: TenantId | undefined;
  /** What `aud` must be or contain. */
  readonly audience: string;
  /** Accepted `typ` values in lower case, without `application/`; `undefined` stands for an absent one. */
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
  /** Of the ID token. */
  readonly subject: string;
  /** The access token that came with the ID token. */
  readonly accessToken: string;
  readonly now: Date;
};

export type LoginExpectations = {
  readonly tenantId: TenantId;
  readonly clientId: string;
  /** The one that went into the authorization request. */
  readonly nonce: string;
  /** The access token that came with the ID token. */
  readonly accessToken: string | undefined;
  readonly now: Date;
};

/**
 * Other people's OpenID providers and OAuth authorization servers. Metadata and keys are cached for each tenant,
 * since what one may call another may not; concurrent callers share one call. Without a tenant it is the service that asks.
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
   * Signature by a key of this issuer, then `iss`, `aud`, `exp`, `nbf` and `iat`.
   * @throws ForeignTokenError when the token is bad, AuthorizationServerError when it cannot be judged.
   */
  abstract verifyToken(issuer: string, token: string, expected: TokenExpectations): Promise<VerifiedToken>;

  /**
   * Redeems a code at the token endpoint (RFC 6749 section 4.1.3, RFC 7636 section 4.5). One attempt.
   * @throws AuthorizationServerError
   */
  abstract exchangeCode(issuer: string, exchange: CodeExchange): Promise<TokenAnswer>;

  /**
   * Obtains a token for the client itself and throws it away (RFC 6749 section 4.4).
   * @throws AuthorizationServerError when the server does not give one.
   */
  abstract logInAsClient(issuer: string, client: { readonly clientId: string; readonly clientSecret: string }): Promise<void>;

  /**
   * OpenID Connect Core 1.0 section 3.1.3.7, with `nonce` and, when present, `at_hash`.
   * @returns every claim; `sub` is a string.
   * @throws ForeignTokenError when the token is bad, AuthorizationServerError when it cannot be judged.
   */
  abstract verifyIdToken(issuer: string, idToken: string, expected: LoginExpectations): Promise<JsonObject>;

  /**
   * Looks into an access token that this issuer's token endpoint just gave us. It is meant for somebody else, so its
   * audience is not ours to check; use `verifyToken` for a token that a wallet sends.
   * @returns every claim of a JWT that a key of this issuer signed; undefined for any other access token.
   * @throws AuthorizationServerError when it cannot be judged.
   */
  abstract readOwnAccessToken(
    issuer: string,
    token: string,
    expected: { readonly tenantId: TenantId; readonly now: Date },
  ): Promise<JsonObject | undefined>;

  /**
   * Asks the userinfo endpoint (OpenID Connect Core 1.0 section 5.3), whose answer is JSON or a JWT that the issuer signed.
   * @returns every claim, `sub` is the one that was expected; undefined for an issuer without such an endpoint.
   * @throws AuthorizationServerError whose `error` begins with `userinfo`.
   */
  abstract readUserinfo(issuer: string, expected: UserinfoExpectations): Promise<JsonObject | undefined>;
}
