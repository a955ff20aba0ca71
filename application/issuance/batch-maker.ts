import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { PublicJwk } from '../../domain/shared/jwk.ts';
import type { IssuedBatch } from '../../domain/status-lists/status-list.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { Random } from '../ports/random.ts';
import { type AllocatedEntries, StatusAllocator } from '../status-lists/status-allocator.ts';
import type { TenantConfiguration } from '../tenant-configuration.ts';
import { CredentialFactory } from './credential-factory.ts';

export type MadeBatch = {
  /** One per key, or a single one where none is bound. */
  readonly credentials: readonly string[];
  /** What goes on record; its id is the `notification_id`. */
  readonly batch: IssuedBatch;
  /** Taken for it; undefined without statuses, and for what a backend made itself. */
  readonly entries?: AllocatedEntries | undefined;
};

/** Makes the credentials of one request: the same claims, a key and a status entry of its own each. */
export class BatchMaker extends needs({
  credentialFactory: CredentialFactory,
  statusAllocator: StatusAllocator,
  clock: Clock,
  random: Random,
}) {
  /**
   * One credential per key, each with a status entry where the configuration has statuses. A batch that does not get on
   * record has to be discarded.
   */
  async make(
    configured: TenantConfiguration,
    configuration: CredentialConfiguration,
    contents: {
      readonly session: { readonly id: SessionId };
      readonly claims: JsonObject;
      readonly holderKeys: readonly PublicJwk[];
    },
  ): Promise<MadeBatch> {
    const { session, holderKeys } = contents;
    const count = Math.max(1, holderKeys.length);
    const entries = await this.#allocate(configured, configuration, count);
    try {
      const credentials = await this.#sign(configured, configuration, contents, count, entries);
      return {
        credentials,
        batch: this.recordOf(session.id, configuration.id, count, entries),
        entries,
      };
    } catch (error) {
      this.#giveBack(configured, entries);
      throw error;
    }
  }

  /**
   * For a batch that was refused for sure: its status entries are free for others. Its credentials must not leave the
   * process.
   */
  discard(configured: TenantConfiguration, { entries }: MadeBatch): void {
    this.#giveBack(configured, entries);
  }

  async #allocate(
    configured: TenantConfiguration,
    configuration: CredentialConfiguration,
    count: number,
  ): Promise<AllocatedEntries | undefined> {
    if (!configuration.statusManagement) return undefined;
    return this.ports.statusAllocator.allocate(configured, configuration, count);
  }

  #giveBack(configured: TenantConfiguration, entries: AllocatedEntries | undefined): void {
    if (entries !== undefined) this.ports.statusAllocator.giveBack(configured.tenantId, entries);
  }

  async #sign(
    configured: TenantConfiguration,
    configuration: CredentialConfiguration,
    { claims, holderKeys }: { readonly claims: JsonObject; readonly holderKeys: readonly PublicJwk[] },
    count: number,
    entries: AllocatedEntries | undefined,
  ): Promise<readonly string[]> {
    const credentials: string[] = [];
    for (let i = 0; i < count; i++) {
      const idx = entries?.indices[i];
      credentials.push(
        await this.ports.credentialFactory.make(configured, configuration, claims, {
          ...(holderKeys[i] === undefined ? {} : { holderKey: holderKeys[i] }),
          ...(entries === undefined || idx === undefined ? {} : { status: { idx, uri: entries.uri } }),
        }),
      );
    }
    return credentials;
  }

  /** What goes on record of credentials that were handed out, also of those that a backend made itself. */
  recordOf(
    sessionId: SessionId,
    credentialConfigurationId: string,
    count: number,
    entries?: AllocatedEntries,
  ): IssuedBatch {
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
