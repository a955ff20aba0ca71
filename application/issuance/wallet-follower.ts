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

/** What credentials follow of the wallet that they are issued to. */
export class WalletFollower extends needs({ walletProviderTrust: WalletProviderTrust, settings: ServiceSettings }) {
  /**
   * @param statuses of the attestations of the wallet and of its keys.
   * @returns those that a credential of the configuration follows; none where it does not.
   */
  async followed(
    configured: TenantConfiguration,
    configuration: CredentialConfiguration,
    statuses: readonly WalletStatus[],
  ): Promise<readonly WalletStatus[]> {
    if (statuses.length === 0 || !followsWallet(configuration, await configured.issuance())) return [];
    return distinctStatuses(statuses);
  }

  /**
   * The wallet may have been revoked since it was asked about.
   * @param refusal what that means to whoever asks for credentials.
   */
  async assertStanding(
    configured: TenantConfiguration,
    statuses: readonly WalletStatus[],
    refusal: (told: string, options: { readonly cause: OperatorReason }) => Failure,
  ): Promise<void> {
    if (statuses.length === 0) return;
    const answer = await this.ports.walletProviderTrust.verifyAgain(configured, statuses);
    if ('statuses' in answer) return;
    throw refusal(answer.told, { cause: new OperatorReason(answer.reason) });
  }

  /** What goes on record with a batch: nothing for one that has no status and so cannot be revoked. */
  following(
    { id, sessionId, statusListId }: IssuedBatch,
    endsAt: Date | null,
    statuses: readonly WalletStatus[],
  ): { readonly follows?: FollowingBatch } {
    if (statusListId === null || statuses.length === 0) return {};
    const named = statuses.map((status) => ({ ...status, listId: this.#listId(status) }));
    return { follows: { batchId: id, sessionId, endsAt, statuses: named } };
  }

  /** Whoever has the database alone cannot tell which provider's list it is. */
  #listId({ uri, anchor }: WalletStatus): string {
    const key = this.ports.settings.subjectKey;
    return createHmac('sha256', key).update(`followed list ${anchor} ${uri}`).digest('base64url');
  }
}
