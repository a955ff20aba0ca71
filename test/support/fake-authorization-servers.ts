import { AuthorizationServers, type TokenAnswer } from '../../application/ports/authorization-servers.ts';
import type { ServerMetadata } from '../../domain/oauth/server-metadata.ts';
import type { JsonObject } from '../../domain/shared/json.ts';

export const UPSTREAM = 'https://login.example';

/** A provider where everybody logs in as Ada. A test that needs another answer replaces the method. */
export class FakeAuthorizationServers extends AuthorizationServers {
  metadata: ServerMetadata = {
    issuer: UPSTREAM,
    authorizationEndpoint: `${UPSTREAM}/authorize`,
    tokenEndpoint: `${UPSTREAM}/token`,
    jwksUri: `${UPSTREAM}/jwks`,
    userinfoEndpoint: undefined,
    clientAuthenticationMethods: ['client_secret_basic'],
    namesItselfInResponses: true,
  };
  claims: JsonObject = { sub: 'ada', given_name: 'Ada' };
  override async discover(): Promise<ServerMetadata> {
    return this.metadata;
  }
  override async verifyToken() {
    return { type: 'at+jwt', algorithm: 'ES256', claims: this.claims } as const;
  }
  override async exchangeCode(): Promise<TokenAnswer> {
    return { idToken: 'the ID token', accessToken: undefined };
  }
  override async logInAsClient(): Promise<void> {}
  override async verifyIdToken(): Promise<JsonObject> {
    return this.claims;
  }
  override async readOwnAccessToken(): Promise<undefined> {}
  override async readUserinfo(): Promise<JsonObject | undefined> {
    return undefined;
  }
}
