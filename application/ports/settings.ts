import type { KeyObject } from 'node:crypto';

/** The build of the running service. */
export type Release = {
  /** Release number, such as `0.2.0`. */
  readonly version: string;
  /** Git commit that was built; null if it is unknown. */
  readonly commit: string | null;
};

/** Settings that use cases need. Read once at the start and frozen. */
export abstract class ServiceSettings {
  /** Public address without a trailing slash. Every published address begins with it. */
  abstract readonly publicUrl: string;
  abstract readonly release: Release;
  abstract readonly sessionTtlSeconds: number;
  abstract readonly statusDefaults: { readonly capacity: number; readonly bits: 1 | 2 | 4 | 8; readonly ttl: number };
  /** Retention of tenants' audit log entries in days; undefined to keep them as long as the tenant exists. */
  readonly auditKeepDays?: number | undefined;
  /** Login of people to the console when an external provider issues access tokens. */
  readonly consoleLogin?: { readonly issuer: string; readonly clientId: string } | undefined;
  abstract readonly rootClient: { readonly clientId: string; readonly secret: string };
  /** Keys of challenges that this service issues; the first creates, all verify. */
  abstract readonly nonceKeys: readonly KeyObject[];
  /** Keys of refresh tokens; the first creates, all verify. */
  abstract readonly refreshTokenKeys: readonly KeyObject[];
  /** Keys from which the tenants' request encryption keys are derived; those of the first are published. */
  abstract readonly encryptionKeys: readonly KeyObject[];
  /** Key for the hashes of users of external authorization servers. */
  abstract readonly subjectKey: KeyObject;
  /** Key for the hashes of transaction codes. */
  abstract readonly txCodeKeys: readonly KeyObject[];
}

/** `{PUBLIC_URL}/{tenant}`: the Credential Issuer Identifier and the built-in authorization server's issuer. */
export function issuerIdentifier({ publicUrl }: Pick<ServiceSettings, 'publicUrl'>, tenantId: string): string {
  return `${publicUrl}/${tenantId}`;
}
