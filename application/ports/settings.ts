import type { KeyObject } from 'node:crypto';

/** Which build of the service runs. */
export type Release = {
  /** Release number, such as `0.2.0`. */
  readonly version: string;
  /** Git commit that was built; null if it is unknown. */
  readonly commit: string | null;
};

/** What use cases must know of the configuration. Read once at the start, frozen. */
export abstract class ServiceSettings {
  /** Public address without a trailing slash. Every published address begins with it. */
  abstract readonly publicUrl: string;
  abstract readonly release: Release;
  abstract readonly sessionTtlSeconds: number;
  abstract readonly statusDefaults: { readonly capacity: number; readonly bits: 1 | 2 | 4 | 8; readonly ttl: number };
  /** Days that entries of tenants' audit logs are kept; undefined for as long as their tenant. */
  readonly auditKeepDays?: number | undefined;
  /** Where people log in to the console, when an external provider gives access tokens. */
  readonly consoleLogin?: { readonly issuer: string; readonly clientId: string } | undefined;
  abstract readonly rootClient: { readonly clientId: string; readonly secret: string };
  /** Keys for challenges of our own; the first makes, all verify. */
  abstract readonly nonceKeys: readonly KeyObject[];
  /** Keys for refresh tokens; the first makes, all verify. */
  abstract readonly refreshTokenKeys: readonly KeyObject[];
  /** Keys that those of the tenants for encrypted requests follow from; the first makes the published ones. */
  abstract readonly encryptionKeys: readonly KeyObject[];
  /** Key for the hashes of users of foreign authorization servers. */
  abstract readonly subjectKey: KeyObject;
  /** Key for the hashes of transaction codes. */
  abstract readonly txCodeKeys: readonly KeyObject[];
}

/** `{PUBLIC_URL}/{tenant}`: the Credential Issuer Identifier and the built-in authorization server's issuer. */
export function issuerIdentifier({ publicUrl }: Pick<ServiceSettings, 'publicUrl'>, tenantId: string): string {
  return `${publicUrl}/${tenantId}`;
}
