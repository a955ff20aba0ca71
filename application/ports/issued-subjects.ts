import type { SessionId, TenantId } from '../../domain/shared/ids.ts';

/** What one session issued of one configuration to one person. */
export type IssuedToSubject = {
  readonly tenantId: TenantId;
  readonly fingerprint: string;
  readonly sessionId: SessionId;
  readonly credentialConfigurationId: string;
};

/** That all of it is revoked. */
export type RevocationOrder = IssuedToSubject & {
  /** Each order of the same has another one, so that whoever fulfils one knows that no other came in between. */
  readonly dueAt: Date;
};

/** Credentials by the persons whom they are about. Nothing here says who these are. */
export type IssuedSubjects = {
  /** The key of a tenant's fingerprints. @param fresh becomes it where there is none yet. */
  subjectKey(tenantId: TenantId, fresh: Buffer): Promise<Buffer>;
  /** How many batches of credentials have one of these fingerprints; counts no further than `limit`. */
  countBatches(tenantId: TenantId, fingerprints: readonly string[], limit: number): Promise<number>;
  /**
   * Orders that what has one of these fingerprints is revoked. What is issued afterwards is not meant.
   * @param configurationIds only what was issued of these; of all where it is undefined.
   */
  orderRevocations(
    tenantId: TenantId,
    fingerprints: readonly string[],
    configurationIds: readonly string[] | undefined,
    now: Date,
  ): Promise<void>;
  /**
   * Records that credentials of these persons were revoked. From then on a commit that `identifies` one of them fails, unless its
   * grant was recorded later, or its wallet was authorized later where it has no grant. A commit that is in progress ends first, so that `orderRevocations` finds its credentials.
   * @param configurationIds of these; of all where it is undefined.
   */
  noteRevoked(
    tenantId: TenantId,
    fingerprints: readonly string[],
    configurationIds: readonly string[] | undefined,
    now: Date,
  ): Promise<void>;
  /**
   * Revokes grants by which credentials were issued to these persons, as far as `noteRevoked` covers all configurations of a grant
   * and all credentials that it brought. One that covers other configurations or serves another person stays.
   */
  revokeGrants(tenantId: TenantId, fingerprints: readonly string[], now: Date): Promise<void>;
  /**
   * The same for a grant by which nothing was issued to the person yet.
   * @returns whether the grant is revoked, now or before.
   */
  revokeGrant(tenantId: TenantId, fingerprint: string, grantId: string, now: Date): Promise<boolean>;
  /** Orders of one tenant about these fingerprints, those that wait longest first. */
  revocationOrdersOf(tenantId: TenantId, fingerprints: readonly string[], limit: number): Promise<readonly RevocationOrder[]>;
  /** Orders of all tenants that are due, those that wait longest first. */
  dueRevocationOrders(now: Date, limit: number): Promise<readonly RevocationOrder[]>;
  /** Ids of the batches that an order is about and that nobody has revoked yet. */
  batchesOf(order: IssuedToSubject): Promise<readonly string[]>;
  /** Whether the session has credentials of other persons that were not revoked with `noteRevoked`. */
  servesOthers(order: IssuedToSubject): Promise<boolean>;
  /** All that was issued before it is revoked. One that was given anew meanwhile stays. */
  fulfilOrder(order: RevocationOrder): Promise<void>;
  /** It could not be done: others come first. */
  postponeOrder(order: IssuedToSubject, until: Date): Promise<void>;
};
