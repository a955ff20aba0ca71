import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { maxCopies } from '../../domain/issuance/copies.ts';
import { lifeTimeWithin, MDOC_LIFETIME_SECONDS } from '../../domain/issuance/credential.ts';
import { tellingPlaces } from '../../domain/issuance/linkable-copies.ts';
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
import { denied } from './collect-claims.ts';
import { CredentialFactory } from './credential-factory.ts';
import { WalletFollower } from './wallet-follower.ts';

export type MadeBatch = {
  /** One per key, or a single one where none is bound. */
  readonly credentials: readonly string[];
  /** What goes on record; its id is the `notification_id`. */
  readonly batch: IssuedBatch;
  /** Taken for it; undefined without statuses, and for what a backend made itself. */
  readonly entries?: AllocatedEntries | undefined;
  /** Set where the credentials follow the status of their wallet. */
  readonly follows?: FollowingBatch;
  /** Set where the configuration says whom its credentials are about. */
  readonly identifies?: IdentifiedBatch;
};

/** Chance alone fails so often in a row once in a hundred million batches. */
const MAX_TRIES = 3;

/** Makes the credentials of one request: the same claims, a key and a status entry of its own each. */
export class BatchMaker extends needs({
  credentialFactory: CredentialFactory,
  statusAllocator: StatusAllocator,
  walletFollower: WalletFollower,
  subjectFingerprints: SubjectFingerprints,
  clock: Clock,
  random: Random,
}) {
  /**
   * One credential per key, fewer when claims are large (`maxCopies`), each with a status entry where the configuration has statuses. A batch that does not get on
   * record has to be discarded.
   */
  async make(
    configured: TenantConfiguration,
    configuration: CredentialConfiguration,
    contents: {
      readonly session: { readonly id: SessionId };
      readonly claims: JsonObject;
      readonly holderKeys: readonly PublicJwk[];
      /** What the credentials follow, before the end of which they expire. */
      readonly statuses: readonly WalletStatus[];
      readonly authorization: Pick<IdentifiedBatch, 'grantId' | 'authorizedAt'>;
    },
  ): Promise<MadeBatch> {
    const { credentialFactory, walletFollower, subjectFingerprints, clock } = this.ports;
    const { session, claims, statuses, authorization } = contents;
    const holderKeys = contents.holderKeys.slice(0, maxCopies(claims));
    const now = clock.now();
    const lifeTime = lifeTimeWithin(now, configuration.lifeTime, endOfStatuses(statuses));
    const count = Math.max(1, holderKeys.length);
    const entries = configuration.statusManagement ? await this.#entries(configured, configuration, count) : undefined;
    try {
      const instances = Array.from({ length: count }, (_, i) => {
        const idx = entries?.indices[i];
        const status = entries === undefined || idx === undefined ? undefined : { idx, uri: entries.uri };
        return defined({ holderKey: holderKeys[i], status });
      });
      const credentials = await credentialFactory.make(configured, configuration, claims, instances, lifeTime);
      const batch = this.recordOf(session.id, configuration.id, count, entries);
      const endsAt = latestEnd(now, configuration, lifeTime);
      const fingerprint = await subjectFingerprints.ofIssued(configured, configuration, claims);
      return {
        credentials,
        batch,
        entries,
        ...walletFollower.following(batch, endsAt, statuses),
        ...(fingerprint !== undefined && { identifies: { fingerprint, batch, endsAt, ...authorization } }),
      };
    } catch (error) {
      this.discard(configured, { entries });
      throw error;
    }
  }

  /**
   * Entries of one list whose places tell nobody that they belong together (ARF 3.0 ISSU_35). Where chance made it otherwise,
   * others are taken, and those go to somebody else.
   */
  async #entries(configured: TenantConfiguration, configuration: CredentialConfiguration, count: number): Promise<AllocatedEntries> {
    const { statusAllocator } = this.ports;
    const telling: AllocatedEntries[] = [];
    try {
      for (;;) {
        const entries = await statusAllocator.allocate(configured, configuration, count);
        const fault = tellingPlaces(entries.indices, entries.capacity);
        if (fault === undefined) return entries;
        telling.push(entries);
        if (telling.length >= MAX_TRIES) throw denied(`copies of a batch would share ${fault}`);
      }
    } finally {
      for (const entries of telling) statusAllocator.giveBack(configured.tenantId, entries);
    }
  }

  /** For a batch that was refused for sure: its status entries are free for others. Its credentials must not leave the process. */
  discard(configured: TenantConfiguration, { entries }: Pick<MadeBatch, 'entries'>): void {
    if (entries !== undefined) this.ports.statusAllocator.giveBack(configured.tenantId, entries);
  }

  /** What goes on record of credentials that were handed out, also of those that a backend made itself. */
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

/** When the last credential of a batch ends, at the latest; null where they have no end. */
function latestEnd(now: Date, { config }: CredentialConfiguration, lifeTime: number | null | undefined): Date | null {
  const seconds = lifeTime ?? (config.format === 'mso_mdoc' ? MDOC_LIFETIME_SECONDS : undefined);
  return seconds === undefined ? null : new Date(now.getTime() + seconds * 1000);
}

/** OpenID4VCI 1.0 section 8.3. The batch is what the wallet reports on. */
export function handedOut({ credentials, batch }: MadeBatch): JsonObject {
  return {
    credentials: credentials.map((credential) => ({ credential })),
    notification_id: batch.id,
  };
}
