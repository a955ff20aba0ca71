import { createHmac } from 'node:crypto';
import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { followsWallet } from '../../domain/issuance/wallet-following.ts';
import { type Failure, OperatorReason } from '../../domain/shared/failure.ts';
import type { IssuedBatch } from '../../domain/status-lists/status-list.ts';
import { distinctStatuses, type FollowingBatch, type WalletStatus } from '../../domain/status-lists/wallet-status.ts';
import { needs } from '../needs.ts';
import { WalletProviderTrust } from '../oauth/wallet-provider-trust.ts';
import { ServiceSettings } from '../ports/settings.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/** Determines the wallet statuses that credentials follow. */
export class WalletFollower extends needs({ walletProviderTrust: WalletProviderTrust, settings: ServiceSettings }) {
  /**
   * @param statuses of the attestations of the wallet and of its keys.
   * @returns those that a credential of the configuration follows; empty if it follows none.
   */
  async followed(
    tenant: TenantConfiguration,
    configuration: CredentialConfiguration,
    statuses: readonly WalletStatus[],
  ): Promise<readonly WalletStatus[]> {
    if (statuses.length === 0 || !followsWallet(configuration, await tenant.issuance())) return [];
    return distinctStatuses(statuses);
  }

  /**
   * Checks again that the wallet was not revoked since its attestation was verified.
   * @param createFailure creates the failure for the caller.
   */
  async assertNotRevoked(
    tenant: TenantConfiguration,
    statuses: readonly WalletStatus[],
    createFailure: (message: string, options: { readonly cause: OperatorReason }) => Failure,
  ): Promise<void> {
    if (statuses.length === 0) return;
    const answer = await this.ports.walletProviderTrust.recheckStatuses(tenant, statuses);
    if ('statuses' in answer) return;
    throw createFailure(answer.walletMessage, { cause: new OperatorReason(answer.reason) });
  }

  /** The follower record of a batch; none for a batch without status entries, which cannot be revoked. */
  followingBatch(
    { id, sessionId, statusListId }: IssuedBatch,
    endsAt: Date | null,
    statuses: readonly WalletStatus[],
  ): { readonly follows?: FollowingBatch } {
    if (statusListId === null || statuses.length === 0) return {};
    const statusesWithList = statuses.map((status) => ({ ...status, listId: this.#listId(status) }));
    return { follows: { batchId: id, sessionId, endsAt, statuses: statusesWithList } };
  }

  /** Keyed, so that the database alone does not reveal the provider of the list. */
  #listId({ uri, anchor }: WalletStatus): string {
    const key = this.ports.settings.subjectKey;
    return createHmac('sha256', key).update(`followed list ${anchor} ${uri}`).digest('base64url');
  }
}
