import type { AuthorizationServer } from './grant.ts';

/** The tenant's authorization servers by issuer; their endpoints are below the issuer. */
export function issuerOf(server: AuthorizationServer, credentialIssuer: string): string {
  return server === 'chained' ? `${credentialIssuer}/chained-as` : credentialIssuer;
}

/** @returns undefined for an issuer that is no server of this service. */
export function serverOf(issuer: string, credentialIssuer: string): AuthorizationServer | undefined {
  if (issuer === credentialIssuer) return 'built-in';
  return issuer === issuerOf('chained', credentialIssuer) ? 'chained' : undefined;
}
