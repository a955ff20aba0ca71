import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { maxCopies } from '../../domain/issuance/copies.ts';
import { lifeTimeWithin, MDOC_LIFETIME_SECONDS } from '../../domain/issuance/credential.ts';
import { linkingIndexPattern } from '../../domain/issuance/linkable-copies.ts';
import type { IdentifiedBatch } from '../../domain/issuance/subject-claims.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { PublicJwk } from '../../domain/shared/jwk.ts';
import type { IssuedBatch } from '../../domain/status-lists/status-list.ts';
import { endOfStatuses, type FollowingBatch, type WalletStatus } from '../../domain/status-lists/wallet-status.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { Random } from '../ports/random.ts';
import { type AllocatedEntries, StatusAllocator } from '../status-lists/status-allocator.ts';
import { SubjectFingerprints } from '../status-lists/subject-fingerprints.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { issuanceDeniedError } from './collect-claims.ts';
import { CredentialFactory } from './credential-factory.ts';
import { WalletFollower } from './wallet-follower.ts';

export type CredentialBatch = {
  /** One per key, or a single one without holder binding. */
  readonly credentials: readonly string[];
  /** The record of the batch; its id is the `notification_id`. */
  readonly batch: IssuedBatch;
  /** Allocated status entries; undefined without statuses, and for credentials of a backend. */
  readonly entries?: AllocatedEntries | undefined;
  /** Set if the credentials follow the status of their wallet. */
  readonly follows?: FollowingBatch;
  /** Set if the configuration identifies the subject of its credentials. */
  readonly identifies?: IdentifiedBatch;
};

/** So many failures in a row happen by chance once in a hundred million batches. */
const MAX_ATTEMPTS = 3;

/** Creates the credentials of one request: with the same claims, each with its own key and status entry. */
export class BatchFactory extends needs({
  credentialFactory: CredentialFactory,
  statusAllocator: StatusAllocator,
  walletFollower: WalletFollower,
  subjectFingerprints: SubjectFingerprints,
  clock: Clock,
  random: Random,
}) {
  /**
   * Creates one credential per key, fewer when claims are large (`maxCopies`), each with a status entry if the configuration has statuses.
   * A batch that is not recorded must be discarded.
   */
  async create(
    tenant: TenantConfiguration,
    configuration: CredentialConfiguration,
    contents: {
      readonly session: { readonly id: SessionId };
      readonly claims: JsonObject;
      readonly holderKeys: readonly PublicJwk[];
      /** Wallet statuses that the credentials follow; the credentials expire before these do. */
      readonly statuses: readonly WalletStatus[];
      readonly authorization: Pick<IdentifiedBatch, 'grantId' | 'authorizedAt'>;
    },
  ): Promise<CredentialBatch> {
    const { credentialFactory, walletFollower, subjectFingerprints, clock } = this.ports;
    const { session, claims, statuses, authorization } = contents;
    const holderKeys = contents.holderKeys.slice(0, maxCopies(claims));
    const now = clock.now();
    const lifeTime = lifeTimeWithin(now, configuration.lifeTime, endOfStatuses(statuses));
    const count = Math.max(1, holderKeys.length);
    const entries = configuration.statusManagement ? await this.#allocateEntries(tenant, configuration, count) : undefined;
    try {
      const instances = Array.from({ length: count }, (_, i) => {
        const idx = entries?.indices[i];
        const status = entries === undefined || idx === undefined ? undefined : { idx, uri: entries.uri };
        return defined({ holderKey: holderKeys[i], status });
      });
      const credentials = await credentialFactory.create(tenant, configuration, claims, instances, lifeTime);
      const batch = this.recordOf(session.id, configuration.id, count, entries);
      const endsAt = latestEnd(now, configuration, lifeTime);
      const fingerprint = await subjectFingerprints.ofIssued(tenant, configuration, claims);
      return {
        credentials,
        batch,
        entries,
        ...walletFollower.followingBatch(batch, endsAt, statuses),
        ...(fingerprint !== undefined && { identifies: { fingerprint, batch, endsAt, ...authorization } }),
      };
    } catch (error) {
      this.discard(tenant, { entries });
      throw error;
    }
  }

  /**
   * Allocates entries of one list whose indices do not reveal that they must be sent together (ARF 3.0 ISSU_35). Entries that happen to
   * form a pattern are returned to the pool and others are allocated.
   */
  async #allocateEntries(tenant: TenantConfiguration, configuration: CredentialConfiguration, count: number): Promise<AllocatedEntries> {
    const { statusAllocator } = this.ports;
    const rejectedEntries: AllocatedEntries[] = [];
    try {
      for (;;) {
        const entries = await statusAllocator.allocate(tenant, configuration, count);
        const fault = linkingIndexPattern(entries.indices, entries.capacity);
        if (fault === undefined) return entries;
        rejectedEntries.push(entries);
        if (rejectedEntries.length >= MAX_ATTEMPTS) throw issuanceDeniedError(`copies of a batch would share ${fault}`);
      }
    } finally {
      for (const entries of rejectedEntries) statusAllocator.release(tenant.tenantId, entries);
    }
  }

  /** Returns the status entries of a batch that was certainly not committed. Its credentials must not leave the process. */
  discard(tenant: TenantConfiguration, { entries }: Pick<CredentialBatch, 'entries'>): void {
    if (entries !== undefined) this.ports.statusAllocator.release(tenant.tenantId, entries);
  }

  /** The record of issued credentials, also of those that a backend created. */
  recordOf(sessionId: SessionId, credentialConfigurationId: string, count: number, entries?: AllocatedEntries): IssuedBatch {
    const { clock, random } = this.ports;
    return {
      id: random.token(),
      sessionId,
      credentialConfigurationId,
      count,
      statusListId: entries?.listId ?? null,
      firstCounter: entries?.firstCounter ?? null,
      issuedAt: clock.now(),
    };
  }
}

/** Latest expiry of the credentials of a batch; null if they do not expire. */
function latestEnd(now: Date, { config }: CredentialConfiguration, lifeTime: number | null | undefined): Date | null {
  const seconds = lifeTime ?? (config.format === 'mso_mdoc' ? MDOC_LIFETIME_SECONDS : undefined);
  return seconds === undefined ? null : new Date(now.getTime() + seconds * 1000);
}

/** The credential response (OpenID4VCI 1.0 section 8.3). */
export function credentialResponse({ credentials, batch }: CredentialBatch): JsonObject {
  return { credentials: credentials.map((credential) => ({ credential })), notification_id: batch.id };
}
