import type { SessionId, TenantId } from '../../domain/shared/ids.ts';

/** Credentials of one configuration that one session issued to one person. */
export type IssuedToSubject = {
  readonly tenantId: TenantId;
  readonly fingerprint: string;
  readonly sessionId: SessionId;
  readonly credentialConfigurationId: string;
};

export type RevocationOrder = IssuedToSubject & {
  /** Unique among repeated orders for the same credentials, so that fulfilment notices an order that was renewed meanwhile. */
  readonly dueAt: Date;
};

/** Finds credentials by the person that they are about. Persons are stored as fingerprints only. */
export type IssuedSubjects = {
  /** The key of a tenant's fingerprints. @param fresh stored as the key if the tenant has none yet. */
  subjectKey(tenantId: TenantId, fresh: Buffer): Promise<Buffer>;
  countBatches(tenantId: TenantId, fingerprints: readonly string[], limit: number): Promise<number>;
  /**
   * Orders the revocation of all credentials with one of these fingerprints. Credentials that are issued later are not affected.
   * @param configurationIds restricts the order to these configurations; undefined for all.
   */
  orderRevocations(
    tenantId: TenantId,
    fingerprints: readonly string[],
    configurationIds: readonly string[] | undefined,
    now: Date,
  ): Promise<void>;
  /**
   * Records that credentials of these persons were revoked. From then on a commit that `identifies` one of them fails, unless its grant
   * was recorded later, or its wallet was authorized later if it has no grant. It waits for commits in progress, so that
   * `orderRevocations` finds their credentials.
   * @param configurationIds restricts the record to these configurations; undefined for all.
   */
  noteRevoked(
    tenantId: TenantId,
    fingerprints: readonly string[],
    configurationIds: readonly string[] | undefined,
    now: Date,
  ): Promise<void>;
  /**
   * Revokes grants by which credentials were issued to these persons, if `noteRevoked` covers all configurations of the grant and all
   * credentials that it produced. A grant that covers other configurations or serves another person remains valid.
   */
  revokeGrants(tenantId: TenantId, fingerprints: readonly string[], now: Date): Promise<void>;
  /**
   * Revokes a grant by which nothing was issued to the person yet, on the same conditions.
   * @returns true if the grant is revoked, now or before.
   */
  revokeGrant(tenantId: TenantId, fingerprint: string, grantId: string, now: Date): Promise<boolean>;
  /** Orders of one tenant for these fingerprints, those that wait longest first. */
  revocationOrdersOf(tenantId: TenantId, fingerprints: readonly string[], limit: number): Promise<readonly RevocationOrder[]>;
  /** Due orders of all tenants, those that wait longest first. */
  dueRevocationOrders(now: Date, limit: number): Promise<readonly RevocationOrder[]>;
  batchesOf(order: IssuedToSubject): Promise<readonly string[]>;
  /** True if the session has credentials of other persons that were not revoked with `noteRevoked`. */
  servesOthers(order: IssuedToSubject): Promise<boolean>;
  /** Removes the order after everything was revoked. An order that was renewed meanwhile remains. */
  fulfilOrder(order: RevocationOrder): Promise<void>;
  /** Postpones an order that failed, so that other orders come first. */
  postponeOrder(order: IssuedToSubject, dueAt: Date): Promise<void>;
};
